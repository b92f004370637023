package runs

import (
	"slices"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurm"
)

// PointOf takes the counters of a job's devices out of a look at the node. A
// device that the look does not show is in it without counters, and says so.
func PointOf(n *gpu.Node, r slurm.Resolution) Point {
	p := Point{}
	for _, g := range r.GPUs {
		card := n.Find(g.UUID)
		p.Devices = append(p.Devices, devicePoint(card, g))
		// The look began earlier: where prologs come together it waited its turn.
		if card != nil && !card.Time.IsZero() && (p.Time.IsZero() || card.Time.Before(p.Time)) {
			p.Time = card.Time.UTC()
		}
	}
	if p.Time.IsZero() {
		p.Time = n.Time.UTC()
	}
	return p
}

func devicePoint(card *gpu.GPU, g slurm.GPU) DevicePoint {
	if card == nil {
		d := DevicePoint{Identity: gpu.Identity{Index: g.Index.Or(-1), Minor: g.Minor, UUID: g.UUID, PCI: g.PCI, Name: g.Name}}
		if g.MIG != nil {
			d.Instance = &gpu.Instance{GI: g.MIG.GI, CI: g.MIG.CI, UUID: g.MIG.UUID, Profile: g.MIG.Profile}
		}
		d.Faults = []gpu.Fault{{Call: "gpu-probe", Kind: gpu.FaultOther, Text: "the GPU is not in the answer"}}
		return d
	}
	d := DevicePoint{Identity: card.Identity, Counters: card.Counters, Memory: card.Health.MemoryTotal, Faults: card.Faults}
	if g.MIG == nil {
		d.MemoryUsed = memoryUsed(card.Readings)
		return d
	}
	i := slices.IndexFunc(card.Instances, func(i gpu.Instance) bool { return i.GI == g.MIG.GI && i.CI == g.MIG.CI })
	if i < 0 {
		d.Instance = &gpu.Instance{GI: g.MIG.GI, CI: g.MIG.CI, UUID: g.MIG.UUID, Profile: g.MIG.Profile}
		d.Faults = append(slices.Clone(d.Faults), gpu.Fault{Call: "gpu-probe", Kind: gpu.FaultOther, Text: "the MIG instance is not in the answer"})
		return d
	}
	inst := card.Instances[i]
	d.MemoryUsed = memoryUsed(inst.Readings)
	inst.Readings, inst.Processes = nil, nil
	d.Instance = &inst
	return d
}

func memoryUsed(r gpu.Readings) gpu.Opt[uint64] {
	v, ok := r[gpu.MemoryUsed]
	if !ok || v < 0 {
		return gpu.Opt[uint64]{}
	}
	return gpu.Some(uint64(v))
}

// Cards are the UUIDs of the cards of a job, also of those that the driver does
// not show; nil when none is known by UUID.
func Cards(r slurm.Resolution) []string {
	var out []string
	for _, g := range slices.Concat(r.GPUs, r.Missing) {
		if g.UUID != "" && !slices.Contains(out, g.UUID) {
			out = append(out, g.UUID)
		}
	}
	return out
}
