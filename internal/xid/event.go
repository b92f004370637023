// Package xid turns kernel log lines of NVIDIA's drivers into events, and says
// by NVIDIA's catalogue what an event asks for.
//
// A line of the log is foreign text: a job chooses its process names, and any
// program may write to /dev/kmsg. Only what the driver itself put at a fixed
// place of the line decides anything.
package xid

import (
	"slices"
	"time"

	"gpuhooks/internal/gpu"
)

// Kind says what sort of line an event was.
type Kind string

// The kinds.
const (
	KindXID      Kind = "xid"      // NVRM: Xid (PCI:…): N
	KindSXID     Kind = "sxid"     // nvidia-nvswitchN: SXid (PCI:…): N, about an NVSwitch
	KindFallen   Kind = "fallen"   // "fallen off the bus" without a number: the same as XID 79
	KindGSP      Kind = "gsp"      // trouble of the GPU's system processor without a number
	KindMismatch Kind = "mismatch" // a client's library and the kernel module differ; any job can cause it
)

// Event is one XID or a like message, or several of them after Collapse.
type Event struct {
	Kind Kind   `json:"kind"`
	Code int    `json:"code"`           // XID or SXid number; 0 where the line has none
	PCI  string `json:"pci"`            // as NVML prints it, 00000000:3B:00.0; "" when the line names no card. For sxid the switch's
	UUID string `json:"uuid,omitempty"` // of the GPU, once Assign knows it

	GI      gpu.Opt[int] `json:"gi,omitzero"` // MIG GPU instance
	CI      gpu.Opt[int] `json:"ci,omitzero"` // MIG compute instance
	PID     gpu.Opt[int] `json:"pid,omitzero"`
	Process string       `json:"process,omitempty"` // chosen by the job: never trust it
	Text    string       `json:"text,omitempty"`    // the driver's words behind the number, control characters removed

	Reset      gpu.Opt[bool] `json:"reset,omitzero"`       // 94, 95: "RST: Yes|No"
	DrainReset gpu.Opt[bool] `json:"drain_reset,omitzero"` // 94, 95: "D-RST: Yes|No"
	From       gpu.Opt[int]  `json:"from,omitzero"`        // 154: recovery action before
	To         gpu.Opt[int]  `json:"to,omitzero"`          // 154: recovery action now, numbered as NVML field 230
	CausedBy   int           `json:"caused_by,omitempty"`  // 45: "caused by previous Xid N"
	Link       *LinkReport   `json:"link,omitempty"`       // 144–150
	Switch     SwitchReport  `json:"switch,omitempty"`     // sxid

	Boot  string    `json:"boot_id,omitempty"` // of the log that the line was in, where the reader says it
	Seq   uint64    `json:"seq"`               // kernel log number of the first record
	Last  uint64    `json:"last_seq"`          // … of the last one
	First time.Time `json:"first"`             // zero when the line's time is not known
	Until time.Time `json:"until"`             // time of the last record
	Count int       `json:"count"`             // records, ≥ 1
}

// LinkReport is what an NVLink5 error (144–150) says about itself.
type LinkReport struct {
	Unit   string        `json:"unit"`            // RLW_REMAP, NETIR_LINK_EVT, …
	Fatal  gpu.Opt[bool] `json:"fatal,omitzero"`  // the driver's own word
	Link   gpu.Opt[int]  `json:"link,omitzero"`   // -1: no link in particular
	Info   uint32        `json:"info"`            // IntrInfo
	Status uint32        `json:"status"`          // ErrorStatus
	Words  bool          `json:"words,omitempty"` // Info and Status were in the line, whole
}

// SwitchReport is what an SXid line says of its severity. One SXid is printed as
// up to three lines, which Collapse joins.
type SwitchReport string

// What an SXid line says.
const (
	SwitchFatal    SwitchReport = "fatal"     // "Fatal", "Severity 1"
	SwitchNonFatal SwitchReport = "non-fatal" // "Non-fatal", "Severity 0"
	SwitchData     SwitchReport = "data"      // "Data {…}": registers of the line before
	SwitchUnstated SwitchReport = "unstated"
)

// rank orders what lines of one SXid say; the highest speaks for the event.
func (s SwitchReport) rank() int {
	return slices.Index([]SwitchReport{SwitchData, SwitchUnstated, SwitchNonFatal, SwitchFatal}, s)
}

// CatalogueCode is the XID under which the catalogue knows the event: its own
// number, or that of the numbered event that says the same. 0: none.
func (e Event) CatalogueCode() int {
	switch {
	case e.Kind == KindXID:
		return e.Code
	case e.Kind == KindFallen:
		return 79
	case e.Kind == KindGSP && gspStopped(e.Text):
		return 120
	}
	return 0
}
