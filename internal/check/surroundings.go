package check

import (
	"strings"
	"time"

	"gpuhooks/internal/gpu"
)

// leastRate is the shortest time over which errors of a bus or a port make a
// rate: they come in bursts, and a burst between two looks by hand is none.
const leastRate = 5 * time.Minute

// hourly is a number of errors as a rate.
func hourly(n uint64, over time.Duration) float64 {
	return float64(n) / max(over, leastRate).Hours()
}

// unseen is the finding where what surrounds the GPUs did not arrive. That it
// did not is an error, and driver-stuck says so: once is enough.
func unseen() []Finding {
	return []Finding{{Outcome: Skip, Text: "what surrounds the GPUs was not read"}}
}

// hostFault finds the fault of one part of the host, by how its path begins; nil
// where that part was read.
func hostFault(h *gpu.Host, path string) *gpu.Fault {
	for i := range h.Faults {
		if strings.HasPrefix(h.Faults[i].Call, path) {
			return &h.Faults[i]
		}
	}
	return nil
}

// faulty is a fault as a finding: who could not look has seen nothing.
func faulty(f *gpu.Fault) Finding { return Finding{Outcome: Error, Text: f.Error()} }

// cardAt finds the card with a PCI address; nil when neither NVML nor the driver
// names one.
func cardAt(in Input, address string) *gpu.Identity {
	for i := range in.Node.GPUs {
		if strings.EqualFold(in.Node.GPUs[i].PCI, address) {
			return &in.Node.GPUs[i].Identity
		}
	}
	for _, p := range in.Node.Presence.Proc {
		if strings.EqualFold(p.Address, address) {
			return procIdentity(p)
		}
	}
	return nil
}

// judgedCard says whether a card is to be judged. One that nobody knows by UUID
// is no job's, and judged with the whole node.
func judgedCard(in Input, id *gpu.Identity) bool {
	if id == nil || id.UUID == "" {
		return in.Only == nil
	}
	return in.Judged(id.UUID)
}
