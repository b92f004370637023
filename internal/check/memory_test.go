package check

import (
	"testing"

	"gpuhooks/internal/gpu"
)

// count sets a counter of card 1.
func count(c gpu.Counter, n uint64) func(*Input) {
	return on(1, func(g *gpu.GPU) { g.Counters[c] = n })
}

func all(changes ...func(*Input)) func(*Input) {
	return func(in *Input) {
		for _, c := range changes {
			c(in)
		}
	}
}

func TestECCUncorrected(t *testing.T) {
	action := func(n int) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.RecoveryAction = gpu.Some(n) })
	}
	newErrors := all(
		func(in *Input) { in.Memory.Good["GPU-1"] = card(1).Counters },
		count(gpu.ECCVolUncorrDRAM, 3), count(gpu.ECCAggUncorrDRAM, 5))
	resets := event(94, 1)
	resets.Reset = gpu.Some(true)
	const since = "uncorrectable memory errors since the last good look"
	runTests(t, eccUncorrected, []test{
		{"DRAM", newErrors, []string{"fail GPU-1: " + since + ": 3 in DRAM"}},
		{"SRAM, volatile not reported", all(newErrors, count(gpu.ECCVolUncorrDRAM, 0), count(gpu.ECCAggUncorrDRAM, 2),
			on(1, func(g *gpu.GPU) { delete(g.Counters, gpu.ECCVolUncorrSRAM); g.Counters[gpu.ECCAggUncorrSRAM] = 2 })),
			[]string{"fail GPU-1: " + since + ": 1 in SRAM"}},
		{"contained", all(newErrors, logged(event(94, 1))), []string{"warn GPU-1: " + since + ", contained to one process: 3 in DRAM"}},
		{"contained, by an older driver", all(newErrors, logged(event(94, 1)), on(1, func(g *gpu.GPU) { g.Health.RecoveryAction = gpu.Opt[int]{} })),
			[]string{"warn GPU-1: " + since + ", contained to one process: 3 in DRAM"}},
		{"contained, yet the driver asks for a reset", all(newErrors, logged(event(94, 1)), action(1)), []string{"fail GPU-1: " + since + ": 3 in DRAM"}},
		{"contained, yet the line asks for a reset", all(newErrors, logged(resets)), []string{"fail GPU-1: " + since + ": 3 in DRAM"}},
		{"contained and uncontained", all(newErrors, logged(event(94, 1), event(95, 1))), []string{"fail GPU-1: " + since + ": 3 in DRAM"}},
		{"contained on the other card", all(newErrors, logged(event(94, 0))), []string{"fail GPU-1: " + since + ": 3 in DRAM"}},
		{"reset since", all(newErrors, count(gpu.ECCVolUncorrDRAM, 0)), []string{"warn GPU-1: uncorrectable memory errors before the GPU was reset: 3 in DRAM"}},
		{"reset since, and again", all(newErrors,
			func(in *Input) {
				in.Memory.Good["GPU-1"] = gpu.Counters{gpu.ECCVolUncorrDRAM: 7, gpu.ECCAggUncorrDRAM: 4}
			},
			count(gpu.ECCVolUncorrDRAM, 1)), []string{"fail GPU-1: " + since + ": 1 in DRAM"}},
		{"never looked, none", func(in *Input) { in.Memory.Good = nil }, nil},
		{"never looked, some since the driver was loaded", all(newErrors, func(in *Input) { in.Memory.Good = nil }),
			[]string{"warn GPU-1: uncorrectable memory errors since the driver was loaded, with no earlier look to compare: 3 in DRAM"}},
		{"ECC off", on(1, func(g *gpu.GPU) { g.Counters = gpu.Counters{} }), []string{"skip GPU-1: the driver does not report memory errors"}},
	})
}

func TestRowRemap(t *testing.T) {
	set := func(r gpu.RowRemap) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.RowRemap = gpu.Some(r) })
	}
	none := on(1, func(g *gpu.GPU) { g.Health.RowRemap = gpu.Opt[gpu.RowRemap]{} })
	runTests(t, rowRemapFailure, []test{
		{"failed", set(gpu.RowRemap{Failure: true, Corrected: 1, Uncorrected: 2}), []string{"fail GPU-1: a row of memory could not be remapped (3 remapped before)"}},
		{"pending", set(gpu.RowRemap{Pending: true}), nil},
		{"remapped long ago", set(gpu.RowRemap{Uncorrected: 2}), nil},
		{"no remapping", none, []string{"skip GPU-1: the driver does not report row remapping"}},
	})
	runTests(t, rowRemapPending, []test{
		{"pending", set(gpu.RowRemap{Pending: true}), []string{"fail GPU-1: a row remap takes effect at the next reset"}},
		{"failed", set(gpu.RowRemap{Failure: true}), nil},
		{"no remapping", none, []string{"skip GPU-1: the driver does not report row remapping"}},
	})
	if rowRemapPending.Default != "warn" {
		t.Error("NVIDIA says that new work may run while a remap is pending")
	}
}

func TestRetiredPages(t *testing.T) {
	set := func(p gpu.RetiredPages) func(*Input) {
		return func(in *Input) {
			for i := range in.Node.GPUs {
				in.Node.GPUs[i].Health.RetiredPages = gpu.Some(gpu.RetiredPages{})
			}
			in.Node.GPUs[1].Health.RetiredPages = gpu.Some(p)
		}
	}
	tests := []struct {
		pages gpu.RetiredPages
		want  Outcome
	}{
		{gpu.RetiredPages{}, Pass},
		{gpu.RetiredPages{SingleBit: 31, DoubleBit: 31}, Pass},
		{gpu.RetiredPages{SingleBit: 60, DoubleBit: 3}, Fail},
		{gpu.RetiredPages{DoubleBit: 1, Pending: true}, Warn},
	}
	for _, tt := range tests {
		in := healthy(2)
		set(tt.pages)(&in)
		if got := retiredPages.Run(in)[1].Outcome; got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.pages, got, tt.want)
		}
	}
	if got := retiredPages.Run(healthy(1))[0].Outcome; got != Skip {
		t.Errorf("a card that remaps rows: %s", got)
	}
}
