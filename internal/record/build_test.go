package record

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/xid"
)

var update = flag.Bool("update", false, "write testdata and docs/record.md anew")

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: go test ./internal/record -update", path)
	}
}

func encode(t *testing.T, r Record) []byte {
	t.Helper()
	b := &bytes.Buffer{}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoldenRecords(t *testing.T) {
	for name, in := range scenarios() {
		r := Build(in)
		b := encode(t, r)
		golden(t, filepath.Join("testdata", name+".json"), b)
		var back Record
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encode(t, back), b) {
			t.Errorf("%s: does not survive JSON", name)
		}
	}
}

// want is one value of one GPU of a scenario.
type want struct {
	scenario string
	gpu      int
	field    string
	value    float64 // NaN: unknown
	source   gpu.Source
	flags    []Flag
	why      Why
}

func TestValues(t *testing.T) {
	null := math.NaN()
	for _, w := range []want{
		{"busy", 0, "sm_active_mean_ratio", 0.82, gpu.SourceCounter, nil, ""},
		{"busy", 1, "tensor_active_mean_ratio", 0.46, gpu.SourceCounter, nil, ""},
		{"busy", 0, "sm_active_p50_ratio", 0.82, gpu.SourceGPM, nil, ""},
		{"busy", 0, "energy_joules", 592 * 600, gpu.SourceCounter, nil, ""},
		{"busy", 0, "throttle_sw_power_cap_seconds", 12, gpu.SourceCounter, nil, ""},
		{"busy", 0, "gpu_utilization_mean_ratio", 0.97, gpu.SourceNVML, nil, ""},
		{"busy", 0, "memory_used_max_bytes", 44 * gib, gpu.SourceNVML, nil, ""},
		{"busy", 0, "memory_total_bytes", 80 * gib, gpu.SourceNVML, nil, ""},
		{"busy", 0, "pcie_rx_bytes", 9e8 * 600, gpu.SourceCounter, nil, ""},
		{"busy", 0, "remapped_corrected_rows", 0, gpu.SourceCounter, nil, ""},
		{"busy", 0, "memory_clock_mean_mhz", null, gpu.SourceNone, nil, WhyNotSupported},
		{"unused", 7, "idle_tail_seconds", 3600, gpu.SourceGPM, nil, ""},
		{"unused", 0, "idle_tail_seconds", 0, gpu.SourceGPM, nil, ""},
		{"ecc", 1, "ecc_uncorrected_dram_errors", 2, gpu.SourceCounter, nil, ""}, // volatile runs ahead of aggregate
		{"ecc", 0, "ecc_uncorrected_dram_errors", 0, gpu.SourceCounter, nil, ""},
		{"contained", 0, "ecc_uncorrected_dram_errors", 1, gpu.SourceCounter, nil, ""},
		{"noprolog", 0, "energy_joules", 592 * 600, gpu.SourceNVML, []Flag{Integrated}, ""},
		{"noprolog", 0, "sm_active_mean_ratio", 0.82, gpu.SourceGPM, nil, ""},
		{"noprolog", 0, "ecc_corrected_dram_errors", null, gpu.SourceNone, nil, WhyNoStart},
		{"noprolog", 0, "memory_used_before_bytes", null, gpu.SourceNone, nil, WhyNoStart},
		{"nosampler", 0, "sm_active_mean_ratio", 0.82, gpu.SourceCounter, nil, ""},
		{"nosampler", 0, "gpu_utilization_mean_ratio", null, gpu.SourceNone, nil, WhyNoSamples},
		{"nosampler", 0, "idle_seconds", null, gpu.SourceNone, nil, WhyNoSamples},
		{"fallen", 1, "ecc_corrected_dram_errors", null, gpu.SourceNone, nil, WhyLost},
		{"fallen", 1, "sm_active_mean_ratio", 0.82, gpu.SourceGPM, nil, ""},
		{"fallen", 0, "sm_active_mean_ratio", 0.82, gpu.SourceCounter, nil, ""},
		{"ada", 0, "sm_active_mean_ratio", null, gpu.SourceNone, nil, WhyNoGPM},
		{"ada", 0, "dram_active_mean_ratio", null, gpu.SourceNone, nil, WhyNoGPM},
		{"ada", 0, "gpu_utilization_mean_ratio", 0.64, gpu.SourceNVML, nil, ""},
		{"ada", 0, "ecc_corrected_dram_errors", null, gpu.SourceNone, nil, WhyNotSupported},
		{"mig", 0, "sm_active_mean_ratio", 0.7, gpu.SourceCounter, nil, ""},
		{"mig", 0, "tensor_active_mean_ratio", 0.3, gpu.SourceCounter, nil, ""},
		{"mig", 0, "energy_joules", 592 * 600 * 2.0 / 7, gpu.SourceCounter, []Flag{Estimated}, ""},
		{"mig", 0, "ecc_corrected_dram_errors", 0, gpu.SourceCounter, []Flag{WholeCard}, ""},
		{"mig", 0, "gpu_utilization_mean_ratio", null, gpu.SourceNone, nil, WhyMIG},
		{"mig", 0, "memory_total_bytes", 20 * gib, gpu.SourceNVML, []Flag{Estimated}, ""},
		{"mig", 0, "pcie_rx_bytes", null, gpu.SourceNone, nil, WhyMIG},
		{"nodelost", 0, "energy_joules", 592 * 400, gpu.SourceNVML, []Flag{Integrated}, ""},
		{"nodelost", 0, "remapped_corrected_rows", null, gpu.SourceNone, nil, WhyNoEnd},
		{"reloaded", 0, "energy_joules", 592 * 600, gpu.SourceNVML, []Flag{Integrated}, ""},
		{"reloaded", 0, "sm_active_mean_ratio", 0.82, gpu.SourceGPM, nil, ""},
		{"reloaded", 0, "pcie_replay_errors", 4, gpu.SourceCounter, []Flag{LowerBound}, ""},
		{"reloaded", 0, "ecc_corrected_dram_errors", 0, gpu.SourceCounter, nil, ""}, // the aggregate outlives the reload
		{"shared", 0, "energy_joules", 592 * 600, gpu.SourceCounter, []Flag{SharedGPU}, ""},
	} {
		v := Build(scenarios()[w.scenario]).GPUs[w.gpu].Values[w.field]
		got, isKnown := v.Value.Get()
		if isKnown == math.IsNaN(w.value) || (isKnown && math.Abs(got-w.value) > 1e-6*math.Abs(w.value)+1e-9) {
			t.Errorf("%s: GPU %d: %s = %v (known %v), want %v", w.scenario, w.gpu, w.field, got, isKnown, w.value)
		}
		if v.Source != w.source || !slices.Equal(v.Flags, w.flags) || v.Why != w.why {
			t.Errorf("%s: GPU %d: %s: %v %v %q, want %v %v %q", w.scenario, w.gpu, w.field, v.Source, v.Flags, v.Why, w.source, w.flags, w.why)
		}
	}
}

// Whatever the inputs say, no ratio leaves 0..1, nothing is negative or NaN, and
// an unknown value says why.
func TestSanity(t *testing.T) {
	inputs := scenarios()
	inputs["nothing"] = Input{Epilog: slurm.Job{ID: 1}, Now: began}
	inputs["zero seconds"] = ran(0, load{1, 1, 1, 1}).with(same)
	inputs["clock set back"] = ran(600, load{1, 1, 1, 1}).with(func(s *scenario) { s.End.Time = began.Add(-time.Hour) })
	inputs["garbage"] = ran(600, load{1, 1, 1, 1}).with(func(s *scenario) {
		st := s.Sums.Devices[0].Stats
		st[gpu.SMActive] = runs.Stat{Mean: 1.29, Max: 1.4, P50: math.NaN(), Seconds: 600}
		st[gpu.Power] = runs.Stat{Mean: math.Inf(1), Max: -4, Seconds: 600}
		st[gpu.MemoryUsed] = runs.Stat{Mean: -1, Seconds: 600}
		c := s.End.Devices[0].Counters
		c[gpu.SMCyclesActive] = math.MaxUint64
		c[gpu.EnergyMillijoules] = math.MaxUint64
		c[gpu.ThrottleHWThermal] = math.MaxUint64
		s.Sums.Devices[0].Covered, s.Sums.Devices[0].Idle = -3, gpu.Some(-1.0)
	})
	for name, in := range inputs {
		for _, g := range Build(in).GPUs {
			if len(g.Values) != len(Fields()) {
				t.Errorf("%s: %d values, want %d", name, len(g.Values), len(Fields()))
			}
			for field, v := range g.Values {
				x, isKnown := v.Value.Get()
				switch {
				case !isKnown && (v.Source != gpu.SourceNone || v.Why == ""):
					t.Errorf("%s: %s is unknown and does not say why", name, field)
				case isKnown && (math.IsNaN(x) || math.IsInf(x, 0) || x < 0 || v.Source == gpu.SourceNone || v.Why != ""):
					t.Errorf("%s: %s = %v from %q (%s)", name, field, x, v.Source, v.Why)
				case isKnown && field[len(field)-5:] == "ratio" && x > 1:
					t.Errorf("%s: %s = %v", name, field, x)
				}
			}
		}
	}
	g := Build(inputs["garbage"]).GPUs[0]
	for _, field := range []string{"sm_active_mean_ratio", "energy_joules", "throttle_hw_thermal_seconds", "memory_used_mean_bytes"} {
		if v := g.Values[field]; v.Why != WhyImplausible {
			t.Errorf("garbage: %s = %+v, want implausible", field, v)
		}
	}
	if e := Build(inputs["clock set back"]).Elapsed; e.IsSet() {
		t.Errorf("clock set back: elapsed %v, want unknown", e)
	}
}

func TestQuality(t *testing.T) {
	all := scenarios()
	for name, want := range map[string]Quality{
		"busy":      {Sharing: "no"},
		"short":     {Sharing: "no", ShortJob: true},
		"noprolog":  {NoStart: true},
		"nosampler": {Sharing: "no", SamplerMissing: true},
		"nodelost":  {Sharing: "no", NoEnd: true, NodeLost: true, SamplerStale: true},
		"reloaded":  {Sharing: "no", DriverReloaded: true},
		"shared":    {Sharing: "mps", SharedGPU: true},
	} {
		if got := Build(all[name]).Quality; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if n := len(Build(all["mig"]).GPUs); n != 1 {
		t.Errorf("MIG: %d devices, want one although Slurm's side does not know its UUID", n)
	}
	if c := Build(all["reloaded"]).GPUs[0].Quality.Coverage.Or(-1); c != 0.95 {
		t.Errorf("coverage %v, want 0.95", c)
	}
	lost := Build(all["nodelost"])
	if e := lost.Elapsed.Or(-1); e != 400 || lost.State.Word != NodeLost {
		t.Errorf("node lost: elapsed %v, state %v", e, lost.State)
	}
}

func TestStates(t *testing.T) {
	for _, c := range []struct {
		code, signal gpu.Opt[int]
		inCgroup     bool
		want         Word
	}{
		{gpu.Some(0), gpu.Some(0), false, Completed},
		{gpu.Some(3), gpu.Some(0), false, Failed},
		{gpu.Some(0), gpu.Some(15), false, Signalled},
		{gpu.Some(0), gpu.Some(0), true, Ended}, // RunInJob always says 0
		{gpu.Opt[int]{}, gpu.Opt[int]{}, false, Ended},
	} {
		in := Input{Epilog: slurm.Job{ExitCode: c.code, ExitSignal: c.signal}, InJobCgroup: c.inCgroup}
		if got := Build(in).State.Word; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestRequeuedRunKeepsItsOwnRestartCount(t *testing.T) {
	in := ran(600, load{}).with(func(s *scenario) { s.Epilog.RestartCount = 1 })
	if r := Build(in); r.Job.Restart != 0 {
		t.Errorf("restart %d, want the prolog's 0", r.Job.Restart)
	}
	in.Job = nil
	if r := Build(in); r.Job.Restart != 1 {
		t.Errorf("restart %d, want the epilog's 1", r.Job.Restart)
	}
}

func TestSumsOfAnotherBootAreNotMixedIn(t *testing.T) {
	in := ran(600, load{1, 1, 1, 1}).with(func(s *scenario) { s.Sums.BootID = "before" })
	if r := Build(in); !r.Quality.SamplerMissing {
		t.Error("sums of another boot were used")
	}
}

func TestEvents(t *testing.T) {
	in := ran(600, load{}, load{}).with(func(s *scenario) {
		other, again := xidEvent(48, 5, ""), xidEvent(94, 0, "")
		again.Seq = 901
		s.Sums.Events = []xid.Event{xidEvent(94, 0, ""), other}
		s.Events = []xid.Event{xidEvent(94, 0, ""), again, {Kind: xid.KindXID, Code: 13, PCI: card(1).PCI, Process: "\x1b[31mred\n", Count: 3}}
	})
	got := Build(in).Events
	var codes []int
	for _, e := range got {
		codes = append(codes, e.Code)
	}
	if !slices.Equal(codes, []int{13, 94, 94}) {
		t.Fatalf("events %v: want 13 (no time) first, 94 twice, no other GPU's, none twice", codes)
	}
	if e := got[0]; e.Process != "?[31mred?" || e.Count != 3 || e.Cause != CauseEither || e.UUID != card(1).UUID || e.Time.IsSet() {
		t.Errorf("XID 13: %+v", e)
	}
	ecc := Build(scenarios()["ecc"]).Events
	if len(ecc) != 2 || ecc[0].Code != 95 || ecc[0].Cause != CauseHardware || ecc[0].Action != "reset_gpu" || ecc[1].Kind != KindCheck {
		t.Errorf("ecc: %+v", ecc)
	}
}

func TestFindingsThatMatter(t *testing.T) {
	mine, other := card(0), card(6)
	in := ran(600, load{}).with(func(s *scenario) {
		s.Findings = []check.Finding{
			{Check: "reset-required", Class: check.Hardware, Outcome: check.Fail, GPU: &mine},
			{Check: "gpu-lost", Class: check.Hardware, Outcome: check.Fail, GPU: &other},
			{Check: "left-over-processes", Class: check.Dirty, Outcome: check.Warn, GPU: &mine},
			{Check: "persistence", Class: check.Config, Outcome: check.Warn, GPU: &mine},
			{Check: "probe-answer", Class: check.Driver, Outcome: check.Fail},
			{Check: "gpu-count", Class: check.Config, Outcome: check.Warn},
			{Check: "readings", Class: check.Driver, Outcome: check.Error, GPU: &mine},
			{Check: "xid", Class: check.Hardware, Outcome: check.Fail, GPU: &mine},
		}
	})
	names := func(r Record) (out []string) {
		for _, e := range r.Events {
			out = append(out, e.Check)
		}
		return out
	}
	if got := names(Build(in)); !slices.Equal(got, []string{"reset-required", "left-over-processes", "probe-answer", "xid"}) {
		t.Errorf("%v", got)
	}
	in.Sums.Events = []xid.Event{xidEvent(95, 0, "")}
	if got := names(Build(in)); !slices.Equal(got, []string{"", "reset-required", "left-over-processes", "probe-answer"}) {
		t.Errorf("with the XID itself: %v", got)
	}
}

func TestUnresolvedGPUsAreListedAsUnknown(t *testing.T) {
	in := Input{Epilog: slurm.Job{ID: 9}, Now: began, Resolution: slurm.Resolution{
		Verdict: slurm.Resolved, GPUs: []slurm.GPU{{Index: gpu.Some(2), UUID: "GPU-x"}}, Missing: []slurm.GPU{{PCI: "00000000:3B:00.0"}}}}
	r := Build(in)
	if len(r.GPUs) != 2 || r.GPUs[0].Index != 2 || r.GPUs[1].Index != -1 || r.GPUs[0].Values["energy_joules"].Why != WhyNoStart {
		t.Errorf("%+v", r.GPUs)
	}
	in.Resolution = slurm.Resolution{Verdict: slurm.CannotResolve, Reason: "two orders are possible"}
	if r := Build(in); r.Quality.Unresolved == "" || len(r.GPUs) != 0 {
		t.Errorf("%+v", r.Quality)
	}
}

func TestShare(t *testing.T) {
	for profile, want := range map[string]float64{"1g.10gb": 1. / 7, "2g.20gb": 2. / 7, "1c.3g.40gb": 1. / 7, "7g.80gb": 1, "1g.10gb+me": 1. / 7, "": -1, "9g.9gb": -1} {
		got, ok := share(profile, "NVIDIA H100")
		if ok != (want > 0) || (ok && got != want) {
			t.Errorf("%q: %v %v", profile, got, ok)
		}
	}
	if got, _ := share("4g.24gb", "NVIDIA A30"); got != 1 {
		t.Errorf("A30: %v", got)
	}
}

func TestProfileMemory(t *testing.T) {
	for profile, want := range map[string]float64{"1g.10gb": 10, "1c.2g.20gb": 20, "1g.5gb+me": 5, "7g.80gb": 80, "": 0, "2g": 0, "2g.xgb": 0} {
		if got, ok := profileMemory(profile); ok != (want > 0) || (ok && got != want*gib) {
			t.Errorf("%q: %v %v", profile, got, ok)
		}
	}
}

func TestFieldTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Fields() {
		if seen[f.Field] {
			t.Errorf("%s is there twice", f.Field)
		}
		seen[f.Field] = true
		if f.Doc == "" || len(f.Sources) == 0 || f.read == nil {
			t.Errorf("%s lacks something", f.Field)
		}
	}
	for _, name := range []string{"energy_joules", "memory_used_max_bytes", "throttle_sw_power_cap_seconds", "sm_active_mean_ratio"} {
		if !seen[name] {
			t.Errorf("no %s (DESIGN §8): %v", name, slices.Sorted(maps.Keys(seen)))
		}
	}
}
