// Package driver is the static side of gpu-probe: it starts the probe, streams
// its answer, keeps the deadline and abandons a probe that will not die. It
// never opens a device: everything that can block is in the probe.
package driver

import (
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

// Protocol is the version of the lines below. The first line of a probe's
// answer carries it; another version is not read.
const Protocol = "gpuhooks.probe/1"

// Line is one JSON line of `gpu-probe read`. Exactly one member is set.
//
// The order is: hello; presence and kernel (tier 0); driver; one gpu line a card
// with the decisive readings (Complete false), then one with all of them
// (Complete true), cards interleaved as they are ready: a later line of a card
// replaces the earlier; fault where something failed for the node; done. Where host
// was asked for it comes at any time before done, after a second presence with
// what only then is read.
type Line struct {
	Hello    *Hello        `json:"hello,omitempty"`
	Presence *gpu.Presence `json:"presence,omitempty"`
	Kernel   *Kernel       `json:"kernel,omitempty"`
	Driver   *gpu.Driver   `json:"driver,omitempty"`
	GPU      *gpu.GPU      `json:"gpu,omitempty"`
	Host     *gpu.Host     `json:"host,omitempty"`
	Fault    *gpu.Fault    `json:"fault,omitempty"`
	Done     *Done         `json:"done,omitempty"`
}

// Hello opens an answer.
type Hello struct {
	Protocol string `json:"protocol"`
	Version  string `json:"version"` // of the program
	PID      int    `json:"pid"`
	BootID   string `json:"boot_id"`
}

// Kernel is what the kernel log held after a sequence number.
type Kernel struct {
	Events  []xid.Event `json:"events"`   // collapsed: one per GPU, code and kind with count, first, last
	LastSeq uint64      `json:"last_seq"` // go on after this one next time
	Lost    uint64      `json:"lost"`     // records overwritten before they were read: events are incomplete
	Fault   *gpu.Fault  `json:"fault,omitempty"`

	Probed map[string]uint64 `json:"probed,omitempty"` // record with which the driver last took each NVSwitch in, by address: SXids before it are void

	Loaded gpu.Opt[uint64] `json:"loaded,omitzero"` // record with which the driver was loaded, if after the first one read: events before it are void
}

// Done closes an answer.
type Done struct {
	Calls  int   `json:"calls"`   // NVML calls made, 0 when not counted
	Micros int64 `json:"elapsed"` // microseconds since the probe started
}
