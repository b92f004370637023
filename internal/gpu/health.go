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
	PCIeGen        Opt[int]          `json:"pcie_gen,omitzero"` // current; idle cards lower it
	PCIeWidth      Opt[int]          `json:"pcie_width,omitzero"`
	NVLinksActive  Opt[int]          `json:"nvlinks_active,omitzero"`
	Persistence    Opt[bool]         `json:"persistence,omitzero"`
	ComputeMode    Opt[string]       `json:"compute_mode,omitzero"` // default, exclusive-process, prohibited
	Throttle       Opt[uint64]       `json:"throttle_reasons,omitzero"`
	PowerLimit     Opt[float64]      `json:"power_limit_watts,omitzero"` // enforced
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
