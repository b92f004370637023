//go:build cgo

package sim_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestGPMIsTheMeanActivity(t *testing.T) {
	n := newNode(t, "dgx-h100")
	load(t, n, "--gpus", "0", "--sm", "0.82", "--tensor", "0.46", "--dram", "0.3", "--pcie_rx", "1048576000", "--nvlink_tx", "104857600")
	time.Sleep(150 * time.Millisecond)
	var g gpmResult
	look(t, n, &g, "gpm", "0", "450ms", "1", "2", "5", "7", "10", "11", "20", "21", "61", "248", "249", "260", "30", "999")
	if !g.Support || g.Get != 0 {
		t.Fatalf("%+v", g)
	}
	for id, want := range map[int]float64{1: 100, 2: 82, 5: 46, 7: 46, 10: 30, 11: 0, 20: 0, 21: 1000, 61: 100} {
		if math.Abs(g.value(id)-want) > 0.005*want {
			t.Errorf("metric %d is %g, want %g", id, g.value(id), want)
		}
	}
	if g.value(248) <= 0 || g.value(249) <= 0 || g.value(249) >= g.value(248) || g.Returns[260] != 0 {
		t.Errorf("cumulative cycles: %v", g.Values)
	}
	if g.Returns[30] == 0 || g.Returns[999] == 0 {
		t.Errorf("metrics that do not exist answer %v", g.Returns)
	}
}

// A load that changes and ends between two samples counts for as long as it lasted.
func TestGPMOverAChangingLoad(t *testing.T) {
	n := newNode(t, "dgx-h100")
	over := filepath.Join(t.TempDir(), "over")
	_, result := start(t, n, "gpm", "0", over, "2", "1", "5")
	waitForFile(over + ".ready")
	var before, after sum
	look(t, n, &before, "sums", "0")
	time.Sleep(100 * time.Millisecond) // the first sample's refresh is past
	cmd := n.Load("--gpus", "0", "--for", "600ms", "--steps", "0:sm=0.82,tensor=0.4,util=100,power=500;0.3:sm=0.1,tensor=0,power=200")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	look(t, n, &after, "sums", "0")
	time.Sleep(100 * time.Millisecond)
	if err := os.WriteFile(over, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var g gpmResult
	result(&g)
	near(t, "SM active beside graphics", g.value(2)/g.value(1), (0.82+0.1)/2, 0.005)
	near(t, "tensor active beside graphics", g.value(5)/g.value(1), 0.4/2, 0.005)
	refreshes := math.Round(0.6 * 1000 / g.value(1)) // how many 100 ms refreshes lie between the samples
	near(t, "time between the samples", refreshes/10, g.Seconds, 0.11/g.Seconds)
	near(t, "graphics", g.value(1), 60/(refreshes/10), 0.005)
	extra := after.Energy - before.Energy - 72*(after.At-before.At)
	near(t, "energy on top of idle", extra, (500-72)*0.3+(200-72)*0.3, 0.005)
}

func TestGPMPairsTooClose(t *testing.T) {
	n := newNode(t, "dgx-h100")
	var g gpmResult
	look(t, n, &g, "gpm", "0", "0s", "2")
	if v := g.value(2); g.Get == 0 && g.Returns[2] == 0 && !math.IsNaN(v) && v != 0 { // 0: a refresh lay between them
		t.Errorf("two samples of one refresh say %g %%", v)
	}
}

func TestGPMCanBeSwitchedOff(t *testing.T) {
	n := newNode(t, "dgx-h100")
	set(t, n, "gpm.cumulative=false")
	var g gpmResult
	look(t, n, &g, "gpm", "0", "150ms", "2", "248", "249")
	if g.Returns[2] != 0 || g.Returns[248] != 3 || g.Returns[249] != 3 {
		t.Errorf("without the cumulative ids: %+v", g)
	}
	set(t, n, "gpu.*.gpm.supported=false")
	look(t, n, &g, "gpm", "0", "1ms", "2")
	if g.Support || g.Get == 0 {
		t.Errorf("without GPM: %+v", g)
	}
}

func TestGPMOfAMIGInstance(t *testing.T) {
	n := newNode(t, "dgx-a100-mig")
	set(t, n, "gpu.0.gpm.supported=true") // as a Hopper would
	var list []migDevice
	look(t, n, &list, "mig", "0")
	cmd := n.Load("--sm", "0.6")
	cmd.Env = []string{"CUDA_VISIBLE_DEVICES=" + list[1].UUID}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	time.Sleep(200 * time.Millisecond)
	for where, want := range map[string]float64{"0/1": 60, "0/0": 0, "0": 60 * 28. / 108} {
		var g gpmResult
		look(t, n, &g, "gpm", where, "300ms", "2")
		if math.Abs(g.value(2)-want) > 0.005*want {
			t.Errorf("SM active of %s is %g, want %g", where, g.value(2), want)
		}
	}
}
