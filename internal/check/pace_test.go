package check

import (
	"testing"
	"time"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/gpu"
)

func TestThrottle(t *testing.T) {
	bits := func(b uint64) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.Throttle = gpu.Some(b) })
	}
	draws := func(use, watts, limit float64) func(*Input) {
		return on(1, func(g *gpu.GPU) {
			g.Readings[gpu.Utilization], g.Readings[gpu.Power], g.Health.PowerLimit = use, watts, gpu.Some(limit)
		})
	}
	older := func(by uint64) func(*Input) {
		return func(in *Input) {
			in.Node.GPUs[1].Counters = gpu.Counters{gpu.ThrottleThermal: 100e9 + by}
			in.Memory.Last["GPU-1"] = Before{Time: noon.Add(-time.Minute), Counters: gpu.Counters{gpu.ThrottleThermal: 100e9}}
		}
	}
	runTests(t, throttle, []test{
		{"heat now", bits(gpu.ReasonHWSlowdown | gpu.ReasonHWThermal), []string{"fail GPU-1: slowed down now: hw-thermal, hw-slowdown"}},
		{"power brake now", bits(gpu.ReasonPowerBrake), []string{"fail GPU-1: slowed down now: power-brake"}},
		{"the driver slows down a moment", bits(gpu.ReasonSWThermal), nil},
		{"at its power limit under load (case E22)", all(bits(gpu.ReasonPowerCap), draws(1, 695, 700)), nil},
		{"capped far below its limit (case E23)", all(bits(gpu.ReasonPowerCap), draws(1, 241, 400)), []string{"fail GPU-1: power is capped at 241 W of 400 W"}},
		{"capped while idle", all(bits(gpu.ReasonPowerCap), draws(0, 70, 400)), nil},
		{"idle", bits(gpu.ReasonIdle), nil},
		{"a third of the time", grown(gpu.ThrottleHWThermal, 20e9, time.Minute), []string{"fail GPU-1: slowed down by heat (hardware) for 33 % of the last 1m0s"}},
		{"a fifth of the time", grown(gpu.ThrottleSWThermal, 12e9, time.Minute), nil},
		{"brake all the time", grown(gpu.ThrottleHWBrake, 61e9, time.Minute), []string{"fail GPU-1: slowed down by the power brake for 100 % of the last 1m0s"}},
		{"an older driver counts heat in one", older(30e9), []string{"fail GPU-1: slowed down by heat for 50 % of the last 1m0s"}},
		{"not throttled, older driver", older(0), nil},
		{"nothing reported", on(1, func(g *gpu.GPU) { g.Health.Throttle, g.Counters = gpu.Opt[uint64]{}, nil }), []string{"skip GPU-1: the driver does not report throttling"}},
	})
}

func TestTemperature(t *testing.T) {
	margin := func(m float64) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Readings[gpu.TempMargin] = m })
	}
	again := func(in *Input) {
		b := in.Memory.Last["GPU-1"]
		b.Suspect = []string{"temperature"}
		in.Memory.Last["GPU-1"] = b
	}
	celsius := func(slowdown int, now float64) func(*Input) {
		return on(1, func(g *gpu.GPU) {
			delete(g.Readings, gpu.TempMargin)
			g.Slowdown, g.Readings[gpu.Temperature] = gpu.Some(slowdown), now
		})
	}
	memory := on(1, func(g *gpu.GPU) { g.Readings[gpu.MemTemperature] = 96 })
	runTests(t, temperature, []test{
		{"once (GB200 moves fast)", margin(2), nil},
		{"twice", all(margin(2), again), []string{"fail GPU-1: 2 C below the temperature at which it slows down"}},
		{"was hot", all(margin(20), again), nil},
		{"no margin, but thresholds", all(celsius(92, 90), again), []string{"fail GPU-1: 2 C below the temperature at which it slows down"}},
		{"warm", all(celsius(92, 80), again), nil},
		{"memory", all(memory, again), []string{"fail GPU-1: the memory is at 96 C, its highest"}},
		{"not told", on(1, func(g *gpu.GPU) { g.Readings = nil }), []string{"skip GPU-1: the driver does not report how far it is from slowing down"}},
	})
	in := healthy(2)
	margin(3)(&in)
	if s := Suspects(in, &in.Node.GPUs[1]); len(s) != 1 || s[0] != temperature.Name {
		t.Errorf("suspects %v", s)
	}
	if s := Suspects(in, &in.Node.GPUs[0]); len(s) != 0 {
		t.Errorf("suspects of a cool card: %v", s)
	}
}

func TestPowerLimit(t *testing.T) {
	limit := func(w float64) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.PowerLimit = gpu.Some(w) })
	}
	runTests(t, powerLimit, []test{
		{"below the default", limit(400), []string{"fail GPU-1: the power limit is 400 W, the card's default 700 W"}},
		{"above it", limit(750), nil},
		{"as the baseline says", all(limit(400), on(0, func(g *gpu.GPU) { g.Health.PowerLimit = gpu.Some(400.0) }), expect(baseline.Card{PowerLimit: 400})), nil},
		{"not as the baseline says", all(limit(500), expect(baseline.Card{PowerLimit: 700})), []string{"fail GPU-1: not as the baseline expects: power limit: 500 W instead of 700 W"}},
		{"unified memory, no power limit (case E14)", on(1, func(g *gpu.GPU) { g.Health.PowerLimit = gpu.Opt[float64]{} }),
			[]string{"skip GPU-1: the driver does not report its power limit and default"}},
	})
}

func TestClocks(t *testing.T) {
	runRows(t, clocks, []test{
		{"as the baseline says", expect(baseline.Card{SMClock: 1980}), nil},
		{"left over", all(expect(baseline.Card{SMClock: 1980}), on(1, func(g *gpu.GPU) { g.Health.SMClockLimit = gpu.Some(1200) })),
			[]string{"fail GPU-1: not as the baseline expects: SM clock limit: 1200 MHz instead of 1980 MHz"}},
		{"no baseline", func(*Input) {}, []string{"skip GPU-0: the baseline expects nothing of it", "skip GPU-1: the baseline expects nothing of it"}},
	})
}

func TestSiblings(t *testing.T) {
	eight := func(change func(*gpu.GPU)) func(*Input) { return more(8, on(3, change)) }
	const odd = "fail GPU-3: unlike its siblings: "
	runRows(t, siblings, []test{
		{"eight alike", more(8, func(*Input) {}), nil},
		{"power limit", eight(func(g *gpu.GPU) { g.Health.PowerLimit = gpu.Some(500.0) }), []string{odd + "power limit 500 W, while 7 others have 700 W"}},
		{"a little less", eight(func(g *gpu.GPU) { g.Health.PowerLimit = gpu.Some(650.0) }), nil},
		{"clock limit and VBIOS", eight(func(g *gpu.GPU) { g.Health.SMClockLimit, g.VBIOS = gpu.Some(1200), gpu.Some("96.00.74") }),
			[]string{odd + "VBIOS 96.00.74, while 7 others have 96.00.89; SM clock limit 1200 MHz, while 7 others have 1980 MHz"}},
		{"memory", eight(func(g *gpu.GPU) { g.Health.MemoryTotal = gpu.Some(uint64(40 << 30)) }), []string{odd + "memory 42949672960 bytes, while 7 others have 85899345920 bytes"}},
		{"the baseline judges it", all(eight(func(g *gpu.GPU) { g.Health.PowerLimit = gpu.Some(500.0) }), expect(baseline.Card{PowerLimit: 700})), nil},
		{"four and four", more(8, func(in *Input) {
			for i := range 4 {
				in.Node.GPUs[i].Health.PowerLimit = gpu.Some(500.0)
			}
		}), nil},
		{"two cards", on(1, func(g *gpu.GPU) { g.VBIOS = gpu.Some("x") }), []string{
			"skip GPU-0: there are too few cards of its kind to compare with", "skip GPU-1: there are too few cards of its kind to compare with"}},
		{"one in MIG mode has other limits", eight(func(g *gpu.GPU) {
			g.Health.MIG, g.Health.PowerLimit = gpu.Some(gpu.Switch{Current: true}), gpu.Some(300.0)
		}),
			[]string{"skip GPU-3: there are too few cards of its kind to compare with"}},
		{"the odd one is another job's", all(eight(func(g *gpu.GPU) { g.VBIOS = gpu.Some("x") }), func(in *Input) { in.Only = []string{"GPU-1"} }), nil},
		{"one does not tell", eight(func(g *gpu.GPU) { g.VBIOS = gpu.Opt[string]{} }), nil},
	})
}
