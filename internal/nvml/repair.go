//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// readMemoryRepair reads what the card's memory still can repair, and what
// waits for a reset.
func (l *Library) readMemoryRepair(d nvml.Device, id gpu.Identity, h *gpu.Health, a *answers) {
	if !before(id, "hopper") && l.has("nvmlDeviceGetUnrepairableMemoryFlag_v1") {
		if s, ret := d.GetUnrepairableMemoryFlag_v1(); a.ok("nvmlDeviceGetUnrepairableMemoryFlag_v1", ret) {
			h.Unrepairable = yes(a, "nvmlDeviceGetUnrepairableMemoryFlag_v1", s.BUnrepairableMemory)
		}
	}
	if !before(id, "blackwell") && l.has("nvmlDeviceGetRepairStatus") {
		if s, ret := d.GetRepairStatus(); a.ok("nvmlDeviceGetRepairStatus", ret) {
			channel := yes(a, "nvmlDeviceGetRepairStatus", s.BChannelRepairPending)
			tpc := yes(a, "nvmlDeviceGetRepairStatus", s.BTpcRepairPending)
			if channel.IsSet() && tpc.IsSet() {
				h.Repair = gpu.Some(gpu.Repair{Channel: channel.Or(false), TPC: tpc.Or(false)})
			}
		}
	}
	if before(id, "ampere") {
		return // it retires pages instead
	}
	if b, ret := d.GetRowRemapperHistogram(); a.ok("nvmlDeviceGetRowRemapperHistogram", ret) {
		h.RemapBanks = remapBanks(b, a)
	}
	if h.ECC.Or(gpu.Switch{Current: true}).Current && l.has("nvmlDeviceGetSramEccErrorStatus") {
		if s, ret := d.GetSramEccErrorStatus(); a.ok("nvmlDeviceGetSramEccErrorStatus", ret) {
			h.SRAMThreshold = yes(a, "nvmlDeviceGetSramEccErrorStatus", s.BThresholdExceeded)
		}
	}
}

// yes is a driver's 0 or 1.
func yes(a *answers, call string, v uint32) gpu.Opt[bool] {
	if v > 1 {
		a.garbage(call)
		return gpu.Opt[bool]{}
	}
	return gpu.Some(v == 1)
}

func remapBanks(b nvml.RowRemapperHistogramValues, a *answers) gpu.Opt[gpu.RemapBanks] {
	const most = 1 << 20 // banks; a card has some hundreds
	for _, n := range []uint32{b.Max, b.High, b.Partial, b.Low, b.None} {
		if n > most {
			a.garbage("nvmlDeviceGetRowRemapperHistogram")
			return gpu.Opt[gpu.RemapBanks]{}
		}
	}
	return gpu.Some(gpu.RemapBanks{Max: int(b.Max), High: int(b.High), Partial: int(b.Partial), Low: int(b.Low), None: int(b.None)})
}
