//go:build cgo

package main

import (
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

// A symbol that the driver's library lacks must never be called: the loader
// would end the process. The lists are what real drivers export.
func TestOldDriversLibraries(t *testing.T) {
	for _, branch := range []string{"470", "535", "550"} {
		t.Run(branch, func(t *testing.T) {
			b := newBed(t, "200ms", "dgx-h100", "gpu.0.util=0.5", "gpu.0.memory.used=1GiB")
			if err := b.node.SetDriver(branch); err != nil {
				t.Fatal(err)
			}
			a := readOnce(t, b.node)
			g := a.gpus[0]
			if len(a.gpus) != 8 || len(a.faults)+len(g.Faults) != 0 || g.Readings[gpu.Utilization] != 0.5 || g.Counters[gpu.EnergyMillijoules] == 0 {
				t.Errorf("%d GPUs, faults %v %v, readings %v", len(a.gpus), a.faults, g.Faults, g.Readings)
			}
			if got, want := g.Health.GPMSupported.Or(false), branch != "470"; got != want {
				t.Errorf("GPM %v", got)
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
	}
}
