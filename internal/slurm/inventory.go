package slurm

import (
	"strings"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
)

// Inventory is what a node has, as far as finding a job's GPUs needs it. Its
// JSON is the file that `gpu-prolog resolve --inventory` takes; keys that are
// not here are ignored.
type Inventory struct {
	Node        string         `json:"node"`
	Slurm       string         `json:"slurm,omitempty"`  // Slurm's version, "23.02.7"
	Driver      string         `json:"driver,omitempty"` // NVIDIA's, "580.95.05"
	GPUs        []InventoryGPU `json:"gpus"`
	VisibleGPUs gpu.Opt[int]   `json:"visible_gpus,omitzero"` // how many this process sees, where it is fewer or more
}

// InventoryGPU is one card.
type InventoryGPU struct {
	Index   gpu.Opt[int]   `json:"index"` // NVML order; unset when NVML does not show the card
	Minor   gpu.Opt[int]   `json:"minor"` // /dev/nvidiaN
	Name    string         `json:"name,omitempty"`
	UUID    string         `json:"uuid"`
	PCI     string         `json:"bus"`
	MIGMode bool           `json:"mig_mode,omitempty"`
	MIG     []InventoryMIG `json:"mig,omitempty"`
	Vendor  string         `json:"vendor,omitempty"` // PCI vendor; "" is NVIDIA
}

// InventoryMIG is one MIG compute instance.
type InventoryMIG struct {
	GI      int          `json:"gi"`
	CI      int          `json:"ci"`
	Profile string       `json:"profile"`
	UUID    string       `json:"uuid,omitempty"`
	GIMinor gpu.Opt[int] `json:"gi_minor,omitzero"` // N of /dev/nvidia-caps/nvidia-capN, from mig-minors
	CIMinor gpu.Opt[int] `json:"ci_minor,omitzero"`
}

// InventoryOf makes an Inventory of one look at the node. slurmVersion may be ""
// and caps nil.
func InventoryOf(n *gpu.Node, node, slurmVersion string, caps host.MIGMinors) Inventory {
	inv := Inventory{Node: node, Slurm: slurmVersion, Driver: n.Driver.Version.Or("")}
	for _, g := range n.GPUs {
		ig := InventoryGPU{Index: gpu.Some(g.Index), Minor: g.Minor, Name: g.Name, UUID: g.UUID, PCI: g.PCI}
		if mode, ok := g.Health.MIG.Get(); ok {
			ig.MIGMode = mode.Current
		}
		for _, m := range g.Instances {
			im := InventoryMIG{GI: m.GI, CI: m.CI, Profile: m.Profile, UUID: m.UUID}
			if minor, ok := g.Minor.Get(); ok {
				im.GIMinor = capMinor(caps, host.MIGCap{GPU: minor, GI: m.GI, CI: -1})
				im.CIMinor = capMinor(caps, host.MIGCap{GPU: minor, GI: m.GI, CI: m.CI})
			}
			ig.MIG = append(ig.MIG, im)
		}
		inv.GPUs = append(inv.GPUs, ig)
	}
	return inv
}

func capMinor(caps host.MIGMinors, c host.MIGCap) gpu.Opt[int] {
	if n, ok := caps[c]; ok {
		return gpu.Some(n)
	}
	return gpu.Opt[int]{}
}

// nvidia returns the cards that an NVIDIA driver could show.
func (inv *Inventory) nvidia() []*InventoryGPU {
	var out []*InventoryGPU
	for i := range inv.GPUs {
		g := &inv.GPUs[i]
		v := strings.TrimPrefix(strings.ToLower(g.Vendor), "0x")
		if (v == "" || v == "10de" || v == "nvidia") && (g.Index.IsSet() || g.Minor.IsSet() || g.UUID != "") {
			out = append(out, g)
		}
	}
	return out
}

// hasMIG says whether any card is cut into instances.
func hasMIG(gpus []*InventoryGPU) bool {
	for _, g := range gpus {
		if len(g.MIG) > 0 {
			return true
		}
	}
	return false
}

// capMinors returns the minors of an instance's capability devices. exact is
// false when they come from the kernel's table formula and not from mig-minors
// (facts: gres.md §3).
func (g *InventoryGPU) capMinors(m *InventoryMIG) (gi, ci int, exact bool) {
	gi, ok1 := m.GIMinor.Get()
	ci, ok2 := m.CIMinor.Get()
	if ok1 && ok2 {
		return gi, ci, true
	}
	minor, ok := g.Minor.Get()
	if !ok {
		return -1, -1, false
	}
	gi = 3 + 135*minor + 9*m.GI
	return gi, gi + 1 + m.CI, false
}
