package check

import (
	"testing"
	"time"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/gpu"
)

// expect gives the node a baseline for its kind of card.
func expect(c baseline.Card) func(*Input) {
	return func(in *Input) {
		in.Baseline = baseline.Baseline{Schema: baseline.Schema, Cards: map[string]baseline.Card{card(0).Name: c}}
	}
}

// grown sets a counter of card 1 so much above what the last look saw, and that
// look so long ago.
func grown(c gpu.Counter, by uint64, in time.Duration) func(*Input) {
	return func(i *Input) {
		i.Node.GPUs[1].Counters[c] = card(1).Counters[c] + by
		i.Memory.Last["GPU-1"] = Before{Time: noon.Add(-in), Counters: card(1).Counters}
	}
}

func more(n int, change func(*Input)) func(*Input) {
	return func(in *Input) {
		*in = healthy(n)
		change(in)
	}
}

func TestECCMode(t *testing.T) {
	mode := func(current, pending bool) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.ECC = gpu.Some(gpu.Switch{Current: current, Pending: pending}) })
	}
	none := on(1, func(g *gpu.GPU) { g.Health.ECC = gpu.Opt[gpu.Switch]{} })
	runTests(t, eccMode, []test{
		{"off", mode(false, false), []string{"fail GPU-1: ECC is off"}},
		{"goes off", mode(true, false), []string{"fail GPU-1: ECC goes off at the next reset"}},
		{"goes on", mode(false, true), []string{"fail GPU-1: ECC goes on at the next reset"}},
		{"off on purpose", all(mode(false, false), on(0, func(g *gpu.GPU) { g.Health.ECC = gpu.Some(gpu.Switch{}) }), expect(baseline.Card{ECC: "off"})), nil},
		{"on, and the baseline says off", all(expect(baseline.Card{ECC: "off"}), func(in *Input) { in.Only = []string{"GPU-1"} }),
			[]string{"fail GPU-1: not as the baseline expects: ECC: on instead of off"}},
		{"the card has none", none, []string{"skip GPU-1: the driver does not report ECC"}},
		{"the baseline says on, the driver nothing", all(none, expect(baseline.Card{ECC: "on"})),
			[]string{"error GPU-1: the baseline expects what the driver does not report: ECC"}},
	})
}

func TestECCCorrected(t *testing.T) {
	const look = "corrected memory errors in "
	runTests(t, eccCorrected, []test{
		{"a storm", grown(gpu.ECCVolCorrDRAM, 17_000, time.Minute), []string{"fail GPU-1: 17000 " + look + "1m0s (more than 1000 an hour)"}},
		{"below the limit", grown(gpu.ECCVolCorrDRAM, 999, time.Hour), nil},
		{"above it, in SRAM", grown(gpu.ECCVolCorrSRAM, 2001, 2*time.Hour), []string{"fail GPU-1: 2001 " + look + "2h0m0s (more than 1000 an hour)"}},
		{"a burst within a minute", grown(gpu.ECCVolCorrDRAM, 50, time.Minute), nil},
		{"the last look was a moment ago", grown(gpu.ECCVolCorrDRAM, 17_000, time.Second), []string{"skip GPU-1: no earlier look to compare with"}},
		{"a reading older than the last look", grown(gpu.ECCVolCorrDRAM, 17_000, -time.Minute), []string{"skip GPU-1: no earlier look to compare with"}},
		{"never looked", func(in *Input) { delete(in.Memory.Last, "GPU-1") }, []string{"skip GPU-1: no earlier look to compare with"}},
		{"reset since, many before", func(in *Input) {
			in.Memory.Last["GPU-1"] = Before{Time: noon.Add(-time.Hour), Counters: gpu.Counters{gpu.ECCVolCorrDRAM: 1e6, gpu.ECCVolCorrSRAM: 0}}
		}, nil},
		{"counters read earlier than the look began", all(grown(gpu.ECCVolCorrDRAM, 17_000, time.Minute), on(1, func(g *gpu.GPU) { g.Time = noon.Add(-55 * time.Second) })),
			[]string{"skip GPU-1: no earlier look to compare with"}},
		{"ECC off", on(1, func(g *gpu.GPU) { g.Counters = nil }), []string{"skip GPU-1: the driver does not report corrected memory errors"}},
	})
}

func TestSRAMThreshold(t *testing.T) {
	runTests(t, sramThreshold, []test{
		{"exceeded", on(1, func(g *gpu.GPU) { g.Health.SRAMThreshold = gpu.Some(true) }), []string{"fail GPU-1: the threshold of uncorrectable SRAM errors is exceeded"}},
		{"older driver", on(1, func(g *gpu.GPU) { g.Health.SRAMThreshold = gpu.Opt[bool]{} }), []string{"skip GPU-1: the driver does not report the SRAM error threshold"}},
		{"not read in time", on(1, func(g *gpu.GPU) { g.Health.SRAMThreshold, g.Complete = gpu.Opt[bool]{}, false }), []string{"error GPU-1: not read before the deadline"}},
	})
}

func TestUnrepairableMemory(t *testing.T) {
	runTests(t, unrepairableMemory, []test{
		{"raised", on(1, func(g *gpu.GPU) { g.Health.Unrepairable = gpu.Some(true) }), []string{"fail GPU-1: memory is beyond repair"}},
		{"before Hopper", on(1, func(g *gpu.GPU) { g.Health.Unrepairable = gpu.Opt[bool]{} }), []string{"skip GPU-1: the driver does not report unrepairable memory"}},
	})
}

func TestSpareRows(t *testing.T) {
	set := func(uncorrected uint64, b gpu.RemapBanks) func(*Input) {
		return on(1, func(g *gpu.GPU) {
			g.Health.RowRemap, g.Health.RemapBanks = gpu.Some(gpu.RowRemap{Corrected: 900, Uncorrected: uncorrected}), gpu.Some(b)
		})
	}
	runTests(t, spareRows, []test{
		{"NVIDIA's limit", set(512, gpu.RemapBanks{Max: 640}), []string{"fail GPU-1: 512 rows of memory were replaced because of uncorrectable errors"}},
		{"below it", set(511, gpu.RemapBanks{Max: 640}), nil},
		{"one bank low", set(3, gpu.RemapBanks{Max: 600, High: 30, Partial: 9, Low: 1}), []string{"warn GPU-1: few spare rows left: 1 memory banks have hardly any, 0 none"}},
		{"used in part", set(3, gpu.RemapBanks{Max: 600, High: 30, Partial: 10}), nil},
		{"more banks allowed", all(set(0, gpu.RemapBanks{Low: 1, None: 1}), func(in *Input) { in.Limits.SpareBanks = 3 }), nil},
		{"only the count", on(1, func(g *gpu.GPU) { g.Health.RemapBanks = gpu.Opt[gpu.RemapBanks]{} }), nil},
		{"no remapping", on(1, func(g *gpu.GPU) {
			g.Health.RemapBanks, g.Health.RowRemap = gpu.Opt[gpu.RemapBanks]{}, gpu.Opt[gpu.RowRemap]{}
		}), []string{"skip GPU-1: the driver does not report row remapping"}},
	})
}

func TestRepairPending(t *testing.T) {
	set := func(r gpu.Repair) func(*Input) {
		return func(in *Input) {
			in.Node.GPUs[0].Health.Repair = gpu.Some(gpu.Repair{})
			in.Node.GPUs[1].Health.Repair = gpu.Some(r)
		}
	}
	runRows(t, repairPending, []test{
		{"none", set(gpu.Repair{}), nil},
		{"channel", set(gpu.Repair{Channel: true}), []string{"fail GPU-1: the repair of a memory channel waits for a reset"}},
		{"TPC", set(gpu.Repair{TPC: true}), []string{"fail GPU-1: the repair of a TPC waits for a reset"}},
		{"both", set(gpu.Repair{Channel: true, TPC: true}), []string{"fail GPU-1: repairs of a memory channel and of a TPC wait for a reset"}},
		{"before Blackwell", func(*Input) {}, []string{"skip GPU-0: the driver does not report pending repairs", "skip GPU-1: the driver does not report pending repairs"}},
	})
}
