//go:build cgo

package main

import (
	"slices"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/sim"
)

// Every ready node is read without a fault, within the calls that a look may
// take: 25 a whole GPU and 8 more a MIG instance, the counters alone 8.
func TestReadEveryProfile(t *testing.T) {
	for _, profile := range sim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, profile, "count_calls=true", "gpu.*.process.1=memory=1GiB", "gpu.0.mig.mode=true")
			readOnce(t, n) // fills the identity cache
			for _, args := range [][]string{nil, {"--counters-only"}} {
				if err := n.ResetCalls(); err != nil {
					t.Fatal(err)
				}
				a := readOnce(t, n, args...)
				counts, err := n.Calls()
				if err != nil {
					t.Fatal(err)
				}
				calls := perGPU(counts)
				if len(a.gpus) == 0 || len(a.faults) != 0 || len(a.presence.PCI) != len(a.gpus) {
					t.Errorf("%d GPUs, %d on the bus, faults %v", len(a.gpus), len(a.presence.PCI), a.faults)
				}
				for i, g := range a.gpus {
					if len(g.Faults) != 0 || !g.Complete {
						t.Errorf("gpu %d: faults %v", i, g.Faults)
					}
					got, most := calls[i], 25+8*len(g.Instances)
					if g.Health.GPMSupported.Or(false) && len(g.Instances) == 0 {
						got++ // nvmlGpmMetricsGet names no GPU
					}
					if args != nil {
						most -= 17
					}
					if args != nil && g.Health.MIG.Or(gpu.Switch{}).Current {
						most += 7 // places where an instance could be
					}
					if got == 0 || got > most {
						t.Errorf("gpu %d: %d calls, at most %d", i, got, most)
					}
				}
				t.Logf("%v: %v", args, calls)
			}
		})
	}
}

// What a card or its driver does not have is unset, and what it has is there.
func TestReadKnowsWhatAProfileHas(t *testing.T) {
	type has struct {
		profile string
		gpu     int
		set     []string // of the optional values below; all others are unset
	}
	common := []string{"ecc", "throttle", "pcie gen", "app clock", "pstate", "vbios", "numa", "cpus", "slowdown", "power default", "virtualization", "inforom", "energy", "power limit"}
	ampere := append(slices.Clone(common), "mig", "remap", "banks", "sram")
	for _, c := range []has{
		{"dgx-h100", 0, append(slices.Clone(ampere), "recovery", "unrepairable", "fabric", "health summary", "links up", "margin", "gpm", "gsp", "heat counters", "link errors")},
		{"hgx-h200", 3, append(slices.Clone(ampere), "recovery", "fabric", "health summary", "links up", "margin", "gpm", "gsp", "heat counters", "link errors")},
		{"h100-550", 3, append(slices.Clone(ampere), "fabric", "links up", "gpm", "gsp", "link errors")},
		{"b200", 7, append(slices.DeleteFunc(slices.Clone(ampere), func(s string) bool { return s == "app clock" }),
			"recovery", "unrepairable", "repair", "fabric", "health summary", "links up", "margin", "gpm", "gsp", "heat counters", "link errors", "symbol errors", "ber")},
		{"a100-535", 0, append(slices.Clone(ampere), "links up", "gsp", "link errors")},
		{"v100-470", 0, append(slices.Clone(common), "retired", "links up", "link errors")},
		{"l40s-pcie", 1, append(slices.Clone(common), "remap", "banks", "sram", "recovery", "margin", "gsp", "heat counters")},
		{"mixed", 0, append(slices.Clone(ampere), "recovery", "links up", "gsp", "heat counters", "link errors")},
		{"mixed", 2, append(slices.Clone(common), "remap", "banks", "sram", "recovery", "margin", "gsp", "heat counters")},
		{"vgpu-guest", 0, []string{"ecc", "pstate", "numa", "cpus", "virtualization", "licence"}},
	} {
		t.Run(c.profile, func(t *testing.T) {
			t.Parallel()
			g := readOnce(t, newNode(t, c.profile)).gpus[c.gpu]
			h := g.Health
			counter := func(k gpu.Counter) bool { _, ok := g.Counters[k]; return ok }
			_, margin := g.Readings[gpu.TempMargin]
			fabric := h.Fabric.Or(gpu.FabricState{})
			for name, got := range map[string]bool{
				"ecc": h.ECC.IsSet(), "mig": h.MIG.IsSet(), "remap": h.RowRemap.IsSet(), "banks": h.RemapBanks.IsSet(),
				"retired": h.RetiredPages.IsSet(), "sram": h.SRAMThreshold.IsSet(), "recovery": h.RecoveryAction.IsSet(),
				"unrepairable": h.Unrepairable.IsSet(), "repair": h.Repair.IsSet(), "fabric": h.Fabric.IsSet(),
				"health summary": fabric.Summary.IsSet(), "licence": h.License.IsSet(), "pcie gen": h.PCIeGen.IsSet(),
				"links up": h.NVLinksActive.IsSet(), "ber": h.NVLinkBER.IsSet(), "throttle": h.Throttle.IsSet(),
				"power limit": h.PowerLimit.IsSet(), "app clock": h.SMClockLimit.IsSet(), "pstate": h.PState.IsSet(),
				"gpm": h.GPMSupported.Or(false), "margin": margin, "energy": counter(gpu.EnergyMillijoules),
				"heat counters": counter(gpu.ThrottleHWThermal), "link errors": counter(gpu.NVLinkRecovery), "symbol errors": counter(gpu.NVLinkSymbol),
				"vbios": g.VBIOS.IsSet() && g.VBIOS.Or("")[0] != '?', "inforom": g.InfoROM.IsSet(), "gsp": g.GSP.IsSet(), "numa": g.NUMA.IsSet(),
				"cpus": g.CPUs.IsSet(), "slowdown": g.Slowdown.IsSet(), "power default": g.PowerDefault.IsSet(), "virtualization": g.Virtualization.IsSet(),
			} {
				if want := slices.Contains(c.set, name); got != want {
					t.Errorf("%s: known %v, want %v", name, got, want)
				}
			}
		})
	}
}

// The sampler takes what a guest or a new card has, without a fault.
func TestSampleOtherCards(t *testing.T) {
	for _, c := range []struct {
		profile string
		source  gpu.Source // of SM activity
		power   bool
	}{
		{"vgpu-guest", gpu.SourceNone, false},
		{"b200", gpu.SourceGPM, true},
		{"l40s-idle", gpu.SourceNone, true},
	} {
		t.Run(c.profile, func(t *testing.T) {
			b := newBed(t, "200ms", c.profile, "gpu.0.util=0.5", "gpu.0.sm=0.3", "gpu.0.memory.used=1GiB")
			n := b.begin(1, 0)
			p := b.sampler()
			b.samples(n)
			time.Sleep(time.Second)
			s, _ := b.end(n)
			p.leaves(t, 2*time.Second)
			d := s.Devices[0]
			_, sm := d.Stats[gpu.SMActive]
			_, power := d.Stats[gpu.Power]
			if d.Stats[gpu.Utilization].Mean < 0.45 || sm != (c.source == gpu.SourceGPM) || power != c.power || len(d.Faults) != 0 {
				t.Errorf("stats %v, faults %v", d.Stats, d.Faults)
			}
		})
	}
}
