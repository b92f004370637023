//go:build cgo

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

// A symbol that the driver's library lacks must never be called: the loader
// would end the process. The nodes have the export lists of real drivers.
func TestOldDriversLibraries(t *testing.T) {
	for _, c := range []struct {
		profile, version, cuda string
		cards                  int
		gpm                    bool
		missing                []string // what is not in the library
	}{
		{"v100-470", "470.256.02", "11.4", 4, false, []string{"MemoryInfo_v2", "MarginTemperature", "GspFirmwareVersion", "GpuFabricInfoV"}},
		{"a100-535", "535.261.03", "12.2", 8, false, []string{"MarginTemperature", "GpuFabricInfoV"}},
		{"h100-550", "550.163.01", "12.4", 8, true, []string{"MarginTemperature", "UnrepairableMemoryFlag_v1", "RepairStatus"}},
	} {
		t.Run(c.profile, func(t *testing.T) {
			b := newBed(t, "200ms", c.profile, "gpu.0.util=0.5", "gpu.0.memory.used=1GiB")
			a := readOnce(t, b.node)
			g := a.gpus[0]
			if a.driver.Version.Or("") != c.version || a.driver.CUDA.Or("") != c.cuda || a.driver.ConfCompute.IsSet() != (c.profile != "v100-470") {
				t.Errorf("driver %+v", a.driver)
			}
			if len(a.gpus) != c.cards || len(a.faults)+len(g.Faults) != 0 || g.Readings[gpu.Utilization] != 0.5 || g.Counters[gpu.EnergyMillijoules] == 0 {
				t.Errorf("%d GPUs, faults %v %v, readings %v", len(a.gpus), a.faults, g.Faults, g.Readings)
			}
			if g.Health.GPMSupported.Or(false) != c.gpm || g.Health.RecoveryAction.IsSet() || g.Health.PowerLimit.Or(0) != g.PowerDefault.Or(-1) {
				t.Errorf("health %+v", g.Health)
			}

			n := b.begin(1, 0)
			p := b.sampler()
			b.samples(n)
			time.Sleep(time.Second)
			s, _ := b.end(n)
			p.leaves(t, 2*time.Second)
			if d := s.Devices[0]; d.Stats[gpu.Utilization].Mean < 0.45 || len(d.Faults) != 0 {
				t.Errorf("source %s, faults %v", d.Source, d.Faults)
			}
		})
		t.Run(c.profile+" accept", func(t *testing.T) {
			t.Parallel()
			n := newAcceptNode(t, c.profile)
			for _, name := range []string{"inventory", "gpm", "support"} {
				got := n.group(t, name, 30*time.Second)
				for id, a := range got {
					if a.State == failed {
						t.Errorf("%s: %s", id, a.Answer)
					}
				}
				for _, symbol := range c.missing {
					if a, ok := got["calls"]; ok && !strings.Contains(strings.Split(a.Answer+" MISSING: ", "MISSING: ")[1], symbol) {
						t.Errorf("%s is not said to be missing: %s", symbol, a.Answer)
					}
				}
			}
		})
	}
}

// The inventory that writes gres.conf comes out of an old driver, too.
func TestInventoryOfAnOldDriver(t *testing.T) {
	t.Parallel()
	n := newNode(t, "v100-470")
	out, err := probe(t, "read", "--inventory", "--root", n.Root(), "--nvml", n.Library()).Output()
	if err != nil || strings.Count(string(out), "Tesla V100-SXM2-32GB") != 4 {
		t.Errorf("%v: %s", err, out)
	}
}

// The variants answer as such a driver does: the health of the fabric came
// with 545 and its summary with 570.
func TestFabricByDriver(t *testing.T) {
	for _, c := range []struct {
		branch           string
		known, mask, sum bool
	}{
		{"470", false, false, false}, {"535", true, false, false}, {"550", true, true, false}, {"", true, true, true},
	} {
		t.Run(c.branch, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "dgx-h100", "gpu.0.fabric.health=0x51a9", "gpu.0.fabric.clique=7")
			if c.branch != "" {
				if err := n.SetDriver(c.branch); err != nil {
					t.Fatal(err)
				}
			}
			a := readOnce(t, n)
			f, known := a.gpus[0].Health.Fabric.Get()
			if known != c.known || len(a.gpus[0].Faults) != 0 {
				t.Fatalf("fabric %+v, faults %v", f, a.gpus[0].Faults)
			}
			if known && (f.State != "completed" || f.Clique != 7) || slices.Contains(f.Health, "degraded-bandwidth") != c.mask || f.Summary.IsSet() != c.sum {
				t.Errorf("fabric %+v", f)
			}
		})
	}
}
