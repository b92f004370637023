package gpu

// Health is the present state of a card: what the checks of tier 1 judge.
// Everything that only ever grows is in Counters.
type Health struct {
	RecoveryAction Opt[int]          `json:"recovery_action,omitzero"` // field 230: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, …
	ECC            Opt[Switch]       `json:"ecc,omitzero"`
	MIG            Opt[Switch]       `json:"mig,omitzero"`
	RowRemap       Opt[RowRemap]     `json:"row_remap,omitzero"`
	RemapBanks     Opt[RemapBanks]   `json:"remap_banks,omitzero"`
	RetiredPages   Opt[RetiredPages] `json:"retired_pages,omitzero"` // before Ampere
	SRAMThreshold  Opt[bool]         `json:"sram_threshold_exceeded,omitzero"`
	Unrepairable   Opt[bool]         `json:"unrepairable_memory,omitzero"` // Hopper and newer: memory beyond repair
	Repair         Opt[Repair]       `json:"repair,omitzero"`              // Blackwell: repairs that wait for a reset
	Fabric         Opt[FabricState]  `json:"fabric,omitzero"`              // cards behind an NVSwitch
	License        Opt[bool]         `json:"vgpu_licensed,omitzero"`       // vGPU guests
	PCIeGen        Opt[int]          `json:"pcie_gen,omitzero"`            // current; idle cards lower it
	PCIeWidth      Opt[int]          `json:"pcie_width,omitzero"`
	NVLinksActive  Opt[int]          `json:"nvlinks_active,omitzero"`
	NVLinkBER      Opt[float64]      `json:"nvlink_bit_error_ratio,omitzero"` // NVLink 5: of the worst link, after correction; wrong on healthy cards of some drivers
	Persistence    Opt[bool]         `json:"persistence,omitzero"`
	ComputeMode    Opt[string]       `json:"compute_mode,omitzero"` // default, exclusive-process, prohibited
	Throttle       Opt[uint64]       `json:"throttle_reasons,omitzero"`
	PowerLimit     Opt[float64]      `json:"power_limit_watts,omitzero"`  // enforced
	SMClockLimit   Opt[int]          `json:"sm_clock_limit_mhz,omitzero"` // application clock: the driver runs no faster
	PState         Opt[int]          `json:"pstate,omitzero"`             // 0 under load … 15
	MemoryTotal    Opt[uint64]       `json:"memory_total_bytes,omitzero"`
	GPMSupported   Opt[bool]         `json:"gpm_supported,omitzero"`
}

// Switch is a mode that may be changed for the next reset.
type Switch struct {
	Current bool `json:"current"`
	Pending bool `json:"pending"`
}

// RowRemap is nvmlDeviceGetRemappedRows.
type RowRemap struct {
	Corrected   uint64 `json:"corrected"`   // rows remapped because of corrected errors, over the card's life
	Uncorrected uint64 `json:"uncorrected"` // … of uncorrected errors
	Pending     bool   `json:"pending"`     // takes effect at the next reset
	Failure     bool   `json:"failure"`     // no spare row left: replace the card
}

// RemapBanks is nvmlDeviceGetRowRemapperHistogram: memory banks by spare rows left.
type RemapBanks struct {
	Max     int `json:"max"`
	High    int `json:"high"`
	Partial int `json:"partial"`
	Low     int `json:"low"`
	None    int `json:"none"`
}

// RetiredPages is page retirement on cards before Ampere.
type RetiredPages struct {
	SingleBit uint64 `json:"single_bit"`
	DoubleBit uint64 `json:"double_bit"`
	Pending   bool   `json:"pending"`
}

// Repair is nvmlDeviceGetRepairStatus: what the next reset will repair.
type Repair struct {
	Channel bool `json:"channel_pending"`
	TPC     bool `json:"tpc_pending"`
}

// FabricState is nvmlDeviceGetGpuFabricInfoV: whether the NVLink fabric has
// taken the card in. Multi-GPU work before "completed" fails.
type FabricState struct {
	State   string      `json:"state"`             // not-started, in-progress, completed
	Status  int         `json:"status"`            // NVML return code of the probe of the fabric; 0 is success once completed
	Clique  int         `json:"clique"`            // cards of one clique reach one another
	Cluster string      `json:"cluster,omitempty"` // UUID of the NVLink domain; "" where there is one node only
	Health  []string    `json:"health,omitempty"`  // what the health mask complains of: degraded-bandwidth, route-recovery, route-unhealthy, access-timeout, wrong-configuration
	Summary Opt[string] `json:"summary,omitzero"`  // healthy, unhealthy, limited (v3 of the call)
}
