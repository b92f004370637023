package gpu

import "time"

// Node is one look at a node's GPUs.
type Node struct {
	Time     time.Time `json:"time"`    // when the look began, UTC
	BootID   string    `json:"boot_id"` // /proc/sys/kernel/random/boot_id
	Presence Presence  `json:"presence"`
	Driver   Driver    `json:"driver"`
	GPUs     []GPU     `json:"gpus"`             // in NVML order; a GPU that is lost is still listed when it could be identified
	Host     *Host     `json:"host,omitempty"`   // nil where it was not asked for: only the health check does
	Faults   []Fault   `json:"faults,omitempty"` // what failed for the node as a whole (nvmlInit, …)
}

// Driver is what NVML says about itself.
type Driver struct {
	Version Opt[string] `json:"version"`      // kernel driver, e.g. "580.95.05"
	NVML    Opt[string] `json:"nvml_version"` // library, e.g. "13.580.95.05"
	CUDA    Opt[string] `json:"cuda_version"` // highest CUDA, e.g. "13.0"
	Count   Opt[int]    `json:"gpu_count"`    // nvmlDeviceGetCount

	ConfCompute Opt[ConfCompute] `json:"conf_compute,omitzero"` // set where confidential computing is possible
}

// ConfCompute is the confidential-computing state of the node.
type ConfCompute struct {
	Enabled  bool `json:"enabled"`
	Ready    bool `json:"ready"` // the cards accept work
	DevTools bool `json:"devtools"`
}

// Presence is tier 0: what is there without asking NVML.
type Presence struct {
	ModuleLoaded  Opt[bool]   `json:"module_loaded"`        // /sys/module/nvidia
	ModuleVersion Opt[string] `json:"module_version"`       // /proc/driver/nvidia/version or /sys/module/nvidia/version
	DriverLoad    string      `json:"driver_load"`          // identity of this load of the kernel module; changes with a reload, "" when unknown
	Control       Opt[bool]   `json:"control_node"`         // /dev/nvidiactl is a character device
	DeviceMinors  []int       `json:"device_minors"`        // N of the /dev/nvidiaN character devices
	PCI           []PCIDevice `json:"pci"`                  // NVIDIA display/3D controllers on the bus
	Proc          []ProcGPU   `json:"proc"`                 // /proc/driver/nvidia/gpus
	CapMinors     []int       `json:"cap_minors,omitempty"` // N of the /dev/nvidia-caps/nvidia-capN character devices; read with Host only
	Caps          []MIGCap    `json:"caps,omitempty"`       // MIG instances that the driver shows, with the N of their device; read with Host only
	Faults        []Fault     `json:"faults,omitempty"`
}

// PCIDevice is one NVIDIA GPU as the PCI bus shows it (/sys/bus/pci/devices).
type PCIDevice struct {
	Address string `json:"address"` // as NVML prints it: 00000000:3B:00.0
	Driver  string `json:"driver"`  // kernel driver bound: nvidia, vfio-pci, ""

	// The rest is read only where the host is asked for.
	Width    Opt[int]     `json:"width,omitzero"` // current lanes
	MaxWidth Opt[int]     `json:"max_width,omitzero"`
	Gen      Opt[int]     `json:"gen,omitzero"` // PCIe generation of the link now: idle cards lower it
	MaxGen   Opt[int]     `json:"max_gen,omitzero"`
	Slot     Opt[PCISlot] `json:"slot,omitzero"` // the port above it
	AER      Counters     `json:"aer,omitempty"` // aer_dev_*: PCIeAERCorrectable, …
}

// MIGCap is /proc/driver/nvidia/capabilities/gpuN/mig/gi…/access: who may open
// the device may use the instance.
type MIGCap struct {
	GPU   int `json:"gpu_minor"` // N of /dev/nvidiaN
	GI    int `json:"gi"`
	CI    int `json:"ci"` // -1 for the GPU instance itself
	Minor int `json:"minor"`
}

// PCISlot is what the port above a card can do (/sys/bus/pci/devices/…/../).
type PCISlot struct {
	Address  string   `json:"address"`
	MaxGen   Opt[int] `json:"max_gen,omitzero"`
	MaxWidth Opt[int] `json:"max_width,omitzero"`
	AER      Counters `json:"aer,omitempty"`
}

// ProcGPU is one /proc/driver/nvidia/gpus/<pci>/information.
type ProcGPU struct {
	Address string   `json:"address"` // as NVML prints it
	UUID    string   `json:"uuid"`
	Model   string   `json:"model"`
	Minor   Opt[int] `json:"minor"`
}

// Identity names a card in every way a person may look for it. It does not
// change while the driver stays loaded.
type Identity struct {
	Index        int         `json:"index"` // NVML order
	Minor        Opt[int]    `json:"minor"` // /dev/nvidiaN
	UUID         string      `json:"uuid"`
	PCI          string      `json:"pci"` // NVML bus id: 00000000:3B:00.0
	Name         string      `json:"name"`
	Serial       Opt[string] `json:"serial,omitzero"`
	VBIOS        Opt[string] `json:"vbios,omitzero"`
	Architecture Opt[string] `json:"architecture,omitzero"` // "hopper", "ada", …
	PCIeMaxGen   Opt[int]    `json:"pcie_max_gen,omitzero"`
	PCIeMaxWidth Opt[int]    `json:"pcie_max_width,omitzero"`
	MaxSMClock   Opt[int]    `json:"max_sm_clock_mhz,omitzero"`
	NVLinks      Opt[int]    `json:"nvlinks,omitzero"` // links the card has, active or not

	InfoROM        Opt[string]  `json:"inforom,omitzero"` // image version
	GSP            Opt[string]  `json:"gsp,omitzero"`     // firmware version
	PowerDefault   Opt[float64] `json:"power_limit_default_watts,omitzero"`
	Virtualization Opt[string]  `json:"virtualization,omitzero"` // none, passthrough, vgpu (a guest), host-vgpu, host-vsga
	NUMA           Opt[int]     `json:"numa,omitzero"`
	CPUs           Opt[string]  `json:"cpus,omitzero"`               // CPUs near the card, "0-31,64-95"
	Slowdown       Opt[int]     `json:"slowdown_celsius,omitzero"`   // hardware slowdown threshold
	MemoryMax      Opt[int]     `json:"memory_max_celsius,omitzero"` // highest memory temperature
	Fan            Opt[bool]    `json:"fan,omitzero"`                // it has a fan of its own
}

// GPU is one look at one card.
type GPU struct {
	Identity
	Complete  bool       `json:"complete"`      // everything asked for was tried; false in a partial answer
	Time      time.Time  `json:"time,omitzero"` // when its counters were read, UTC; zero when they were not
	Health    Health     `json:"health"`
	Counters  Counters   `json:"counters,omitempty"`
	Readings  Readings   `json:"readings,omitempty"`
	Processes []Process  `json:"processes,omitempty"`
	Instances []Instance `json:"instances,omitempty"` // MIG
	Faults    []Fault    `json:"faults,omitempty"`
}

// Instance is a MIG compute instance.
type Instance struct {
	GI          int         `json:"gi"`
	CI          int         `json:"ci"`
	UUID        string      `json:"uuid"`
	Profile     string      `json:"profile"` // "1g.10gb"
	MemoryTotal Opt[uint64] `json:"memory_total_bytes,omitzero"`
	Readings    Readings    `json:"readings,omitempty"`
	Counters    Counters    `json:"counters,omitempty"`
	Processes   []Process   `json:"processes,omitempty"`
	Faults      []Fault     `json:"faults,omitempty"`
}

// Process is a process that NVML sees on a GPU.
type Process struct {
	PID    int         `json:"pid"`
	Name   string      `json:"name"`        // comm, stripped; "" when it is gone
	UID    Opt[int]    `json:"uid"`         // of its owner
	Start  Opt[uint64] `json:"start_ticks"` // start time in clock ticks since boot: with PID an identity
	Job    string      `json:"job"`         // Slurm job id from its cgroup, "" when none
	Type   string      `json:"type"`        // compute, graphics
	Memory Opt[uint64] `json:"memory_bytes"`
}

// Find returns the GPU with that UUID, or nil.
func (n *Node) Find(uuid string) *GPU {
	for i := range n.GPUs {
		if n.GPUs[i].UUID == uuid {
			return &n.GPUs[i]
		}
	}
	return nil
}
