package runs

import (
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurm"
)

func TestPointOf(t *testing.T) {
	n := gpu.Node{Time: time.Unix(7, 0), GPUs: []gpu.GPU{
		{
			Identity: gpu.Identity{Index: 0, UUID: "GPU-a", Minor: gpu.Some(2)}, Counters: gpu.Counters{gpu.EnergyMillijoules: 5},
			Health: gpu.Health{MemoryTotal: gpu.Some(uint64(80))}, Readings: gpu.Readings{gpu.MemoryUsed: 3},
		},
		{
			Identity: gpu.Identity{Index: 1, UUID: "GPU-b"}, Readings: gpu.Readings{gpu.MemoryUsed: 70},
			Instances: []gpu.Instance{{GI: 2, CI: 0, UUID: "MIG-2", Readings: gpu.Readings{gpu.MemoryUsed: 9}, Processes: []gpu.Process{{PID: 1}}}},
		},
	}}
	p := PointOf(&n, slurm.Resolution{GPUs: []slurm.GPU{
		{UUID: "GPU-b", MIG: &slurm.MIG{GI: 2, CI: 0}},
		{UUID: "GPU-a"},
		{UUID: "GPU-gone", Minor: gpu.Some(3)},
		{UUID: "GPU-b", MIG: &slurm.MIG{GI: 9, CI: 0, UUID: "MIG-9"}},
	}})
	if len(p.Devices) != 4 || !p.Time.Equal(n.Time) {
		t.Fatalf("%+v", p)
	}
	mig, whole, gone, lostMIG := p.Devices[0], p.Devices[1], p.Devices[2], p.Devices[3]
	if mig.Instance == nil || mig.Instance.UUID != "MIG-2" || mig.Instance.Readings != nil || mig.Instance.Processes != nil || mig.MemoryUsed != gpu.Some(uint64(9)) {
		t.Errorf("instance %+v", mig)
	}
	if whole.Instance != nil || whole.Counters[gpu.EnergyMillijoules] != 5 || whole.Memory != gpu.Some(uint64(80)) || whole.MemoryUsed != gpu.Some(uint64(3)) {
		t.Errorf("card %+v", whole)
	}
	if gone.Index != -1 || gone.Minor != gpu.Some(3) || gone.Counters != nil || len(gone.Faults) != 1 || gone.MemoryUsed.IsSet() {
		t.Errorf("a card that is not in the look %+v", gone)
	}
	if lostMIG.Instance.UUID != "MIG-9" || len(lostMIG.Faults) != 1 || lostMIG.MemoryUsed.IsSet() {
		t.Errorf("an instance that is not in the look %+v", lostMIG)
	}
}

// A run begins when its counters were read, not when the look at the node did.
func TestPointTime(t *testing.T) {
	look := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	n := gpu.Node{Time: look, GPUs: []gpu.GPU{
		{Identity: gpu.Identity{UUID: "GPU-a"}, Time: look.Add(300 * time.Millisecond)},
		{Identity: gpu.Identity{UUID: "GPU-b"}, Time: look.Add(200 * time.Millisecond)},
		{Identity: gpu.Identity{UUID: "GPU-lost"}},
	}}
	for want, uuids := range map[time.Time][]string{
		look.Add(200 * time.Millisecond): {"GPU-a", "GPU-b", "GPU-lost"},
		look:                             {"GPU-lost"},
	} {
		var r slurm.Resolution
		for _, u := range uuids {
			r.GPUs = append(r.GPUs, slurm.GPU{UUID: u})
		}
		if got := PointOf(&n, r).Time; !got.Equal(want) {
			t.Errorf("%v: %v, want %v", uuids, got, want)
		}
	}
}
