package gpu

import (
	"maps"
	"slices"
	"testing"
)

func TestDelta(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end Counters
		want       Counters
		reset      []Counter
	}{
		{"grown", Counters{EnergyMillijoules: 5}, Counters{EnergyMillijoules: 12}, Counters{EnergyMillijoules: 7}, nil},
		{"unchanged is zero, which is known", Counters{PCIeReplay: 3}, Counters{PCIeReplay: 3}, Counters{PCIeReplay: 0}, nil},
		{"unknown at the start", Counters{}, Counters{EnergyMillijoules: 12}, Counters{}, nil},
		{"unknown at the end", Counters{EnergyMillijoules: 12}, Counters{}, Counters{}, nil},
		{
			"reset: what came since is a lower bound",
			Counters{EnergyMillijoules: 100, ECCVolUncorrDRAM: 9, PCIeReplay: 1}, Counters{EnergyMillijoules: 4, ECCVolUncorrDRAM: 2, PCIeReplay: 1},
			Counters{EnergyMillijoules: 4, ECCVolUncorrDRAM: 2, PCIeReplay: 0}, []Counter{ECCVolUncorrDRAM, EnergyMillijoules},
		},
		{"nothing at all", nil, nil, Counters{}, nil},
	} {
		got, reset := Delta(c.start, c.end)
		if !maps.Equal(got, c.want) || !slices.Equal(reset, c.reset) {
			t.Errorf("%s: %v, reset %v; want %v, %v", c.name, got, reset, c.want, c.reset)
		}
	}
}

func TestLost(t *testing.T) {
	g := GPU{Faults: []Fault{{Call: "nvmlDeviceGetEccMode", Kind: FaultOther}}}
	if g.Lost() {
		t.Error("a fault of another kind is no lost GPU")
	}
	g.Faults = append(g.Faults, Fault{Call: "nvmlDeviceGetHandleByIndex", Code: 15, Kind: FaultLost})
	if !g.Lost() {
		t.Error("GPU_IS_LOST is not seen")
	}
}

func TestFind(t *testing.T) {
	n := Node{GPUs: []GPU{{Identity: Identity{UUID: "GPU-a"}}, {Identity: Identity{UUID: "GPU-b", Index: 1}}}}
	if g := n.Find("GPU-b"); g == nil || g.Index != 1 {
		t.Errorf("GPU-b: %+v", g)
	}
	if g := n.Find("GPU-c"); g != nil {
		t.Errorf("GPU-c: %+v", g)
	}
}
