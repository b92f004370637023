// Package baseline is what a node is expected to have: learnt from nodes that a
// person knows to be good, kept in a TOML file that root owns, never learnt
// silently. Without one, a check judges only what needs none.
package baseline

import "gpuhooks/internal/gpu"

// Schema is the format of a baseline file.
const Schema = "gpuhooks.baseline/1"

// Baseline is the file. What it leaves out is not expected, hence not judged:
// the zero value expects nothing.
type Baseline struct {
	Schema string          `toml:"schema"`
	Node   Node            `toml:"node"`
	Cards  map[string]Card `toml:"card"` // by NVML name, "NVIDIA H100 80GB HBM3"
	Ports  map[string]Port `toml:"port"` // InfiniBand and RoCE, by "mlx5_0/1"
}

// Node is what is expected of the node as a whole.
type Node struct {
	Driver      string   `toml:"driver"`       // "580.95.05"
	PCI         []string `toml:"pci"`          // addresses of all GPUs as NVML prints them
	Daemons     []string `toml:"daemons"`      // that must run: nv-fabricmanager, nvidia-persistenced, nv-hostengine, nvidia-imex
	GPUDirect   string   `toml:"gpudirect"`    // peermem, dmabuf, any; "" needs none
	ClockSync   bool     `toml:"clock_sync"`   // the clock is synchronised
	ConfCompute string   `toml:"conf_compute"` // on, off; "" is not judged
}

// Card is what is expected of every GPU of one name. Of a list, one value must
// fit.
type Card struct {
	Count          int            `toml:"count"`
	VBIOS          []string       `toml:"vbios"`
	InfoROM        []string       `toml:"inforom"`
	GSP            []string       `toml:"gsp"`
	PCIeGen        int            `toml:"pcie_gen"`   // the card's and slot's highest
	PCIeWidth      int            `toml:"pcie_width"` // lanes; less is the board's design where it is so on good nodes
	NVLinks        gpu.Opt[int]   `toml:"nvlinks"`    // active ones: 0 is a card whose links are off by design
	PowerLimit     float64        `toml:"power_limit_watts"`
	SMClock        int            `toml:"sm_clock_limit_mhz"`
	Memory         uint64         `toml:"memory_total_bytes"`
	ECC            string         `toml:"ecc"` // on, off
	MIG            string         `toml:"mig"` // on, off
	Persistence    string         `toml:"persistence"`
	ComputeMode    string         `toml:"compute_mode"`
	Virtualization string         `toml:"virtualization"`
	Licensed       bool           `toml:"licensed"`  // a vGPU guest that must hold a licence
	Fabric         bool           `toml:"fabric"`    // must be "completed" in the NVLink fabric
	Instances      map[string]int `toml:"instances"` // MIG profile to number on one card
}

// Port is what is expected of an RDMA port.
type Port struct {
	Layer string  `toml:"layer"` // infiniband, ethernet
	Rate  float64 `toml:"rate_gbps"`
}
