package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

// outcome is what one check said.
func outcome(v verdict.Verdict, name string) check.Outcome {
	i := slices.IndexFunc(v.Checks, func(r verdict.Result) bool { return r.Check == name })
	return v.Checks[i].Outcome
}

// A storm of corrected errors is seen by looks a minute apart, and by those
// between them, but not over a moment, nor by a reading older than the last.
func TestRates(t *testing.T) {
	n := newNode(t)
	start := n.now
	at := func(after time.Duration, errors uint64) check.Outcome {
		t.Helper()
		n.now = start.Add(after)
		n.reading.Node.GPUs[1].Counters[gpu.ECCVolCorrDRAM] = errors
		_, v := n.look(verdict.HealthCheck)
		return outcome(v, "ecc-corrected")
	}
	for _, step := range []struct {
		after  time.Duration
		errors uint64
		want   check.Outcome
	}{
		{0, 5, check.Skip},
		{5 * time.Second, 90_000, check.Skip}, // a moment
		{30 * time.Second, 90_000, check.Warn},
		{70 * time.Second, 90_100, check.Warn}, // since the first look still
		{75 * time.Second, 90_100, check.Skip}, // since the one before
		{130 * time.Second, 90_150, check.Pass},
		{20 * time.Second, 1_000_000, check.Skip}, // an older reading
		{200 * time.Second, 90_150, check.Pass},
		{270 * time.Second, 3, check.Pass}, // reset
	} {
		if got := at(step.after, step.errors); got != step.want {
			t.Errorf("after %s with %d errors: %s, want %s", step.after, step.errors, got, step.want)
		}
	}
	n.reading.Node.Presence.DriverLoad = "8"
	if got := at(400*time.Second, 90_000); got != check.Skip {
		t.Errorf("a driver loaded since: %s", got)
	}
}

// Ports and ends of links are remembered where they were read, and stay where
// they were not.
func TestRatesOfTheHost(t *testing.T) {
	var m Memory
	in := check.Input{Node: gpu.Node{
		Time: time.Unix(1000, 0),
		Presence: gpu.Presence{PCI: []gpu.PCIDevice{{
			Address: "0000:10:00.0", AER: gpu.Counters{gpu.AERCorrectable: 5}, Slot: gpu.Some(gpu.PCISlot{Address: "0000:0f:00.0", AER: gpu.Counters{gpu.AERCorrectable: 6}}),
		}}},
		Host: &gpu.Host{Ports: []gpu.Port{{Device: "mlx5_0", Port: 1, Counters: gpu.Counters{"link_downed": 2}}}},
	}}
	m.learnRates(in)
	in.Node.Time = time.Unix(2000, 0)
	in.Node.Host, in.Node.Presence.PCI[0].AER = nil, nil
	m.learnRates(in)
	last := m.last()
	for key, want := range map[string]int64{"0000:10:00.0": 1000, "0000:0f:00.0": 2000, "mlx5_0/1": 1000} {
		if got := last[key].Time.Unix(); got != want {
			t.Errorf("%s: remembered at %d, want %d", key, got, want)
		}
	}
	if last["mlx5_0/1"].Counters["link_downed"] != 2 {
		t.Errorf("%+v", last["mlx5_0/1"])
	}
}

func TestBaseline(t *testing.T) {
	n := newNode(t)
	n.reading.Node.Driver.Version = gpu.Some("580.95.05")
	n.cfg.Paths.Baseline = filepath.Join(t.TempDir(), "baseline.toml")
	if _, v := n.look(verdict.HealthCheck); outcome(v, "baseline") != check.Skip {
		t.Errorf("without a file: %s", outcome(v, "baseline"))
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(n.cfg.Paths.Baseline, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("schema = \"gpuhooks.baseline/1\"\n[node]\ndriver = \"470.1\"\n")
	if _, v := n.look(verdict.HealthCheck); outcome(v, "baseline") != check.Pass || outcome(v, "versions") != check.Warn {
		t.Errorf("baseline %s, versions %s", outcome(v, "baseline"), outcome(v, "versions"))
	}
	write("schema = 1\n")
	l := read(t.Context(), n.cfg, n.options(verdict.HealthCheck), n.ask)
	v := l.Judge(nil, Jobs{})
	if outcome(v, "baseline") != check.Error || len(l.Problems) != 1 || !strings.Contains(l.Problems[0].Error(), "baseline.toml:1") {
		t.Errorf("broken: %s, %v", outcome(v, "baseline"), l.Problems)
	}
}
