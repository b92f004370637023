package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
)

var seconds = regexp.MustCompile(`\d+\.\d\d s\n`)

// checksBegin is where the names of the checks begin, which are more with each
// version: TestPrintChecks looks at their form.
var checksBegin = regexp.MustCompile(`\n(failed|could not look|warn|passed|do not apply) \(\d+\): `)

func golden(t *testing.T, file, got string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if at := checksBegin.FindStringIndex(got); at != nil {
		got = got[:at[0]]
	}
	if got != string(b) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, b)
	}
}

func TestTable(t *testing.T) {
	n := newNode(t)
	code, out, errs := n.person()
	golden(t, "healthy.txt", seconds.ReplaceAllString(out, "0.01 s\n"))
	if code != 0 || errs != "" {
		t.Errorf("status %d, stderr %q", code, errs)
	}
	n.lose()
	n.answer[4].GPU.Health.Persistence = gpu.Some(false)
	code, out, errs = n.person()
	golden(t, "lost.txt", seconds.ReplaceAllString(out, "0.01 s\n"))
	if code != 1 || errs != "" {
		t.Errorf("status %d, stderr %q", code, errs)
	}
	if n.calls() != "" {
		t.Error("a person's look asked Slurm")
	}
}

func TestQuiet(t *testing.T) {
	n := newNode(t)
	if code, out, errs := n.person("--quiet"); code != 0 || out != "" || errs != "" {
		t.Errorf("all is well: %d, %q, %q", code, out, errs)
	}
	n.lose()
	if code, out, _ := n.person("--quiet"); code != 1 || strings.Count(out, "\n") != 2 {
		t.Errorf("a lost card: %d, %q", code, out)
	}
}

func TestJSON(t *testing.T) {
	n := newNode(t)
	n.lose()
	code, out, _ := n.run("--json") // with slurmd's environment as well: --json only looks
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if code != 1 || r.Schema != "gpuhooks.health/1" || r.Node != "n1" || len(r.GPUs) != 2 || !r.First {
		t.Errorf("status %d, %+v", code, r)
	}
	if r.Verdict.Action != "drain" || r.Verdict.Reason != "LOST gpu=1 GPU-1" || len(r.Verdict.Checks) < 12 {
		t.Errorf("verdict %+v", r.Verdict)
	}
	if n.calls() != "" {
		t.Error("--json asked Slurm")
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name   string
		change func(*testNode)
		args   []string
		want   int
		stderr string
	}{
		{"all is well", func(*testNode) {}, nil, 0, ""},
		{"a warning", func(n *testNode) { n.answer[4].GPU.Health.Persistence = gpu.Some(false) }, nil, 0, ""},
		{"a failure", func(n *testNode) { n.lose() }, nil, 1, ""},
		{"a failure, observing", func(n *testNode) { n.lose(); n.mode = "observe" }, nil, 1, ""},
		{"a probe that died", func(n *testNode) { n.answer = n.answer[:1] }, nil, 3, "warning: gpu-probe: crash: "},
		{"a card that could not be read", func(n *testNode) {
			n.answer[4].GPU.Faults = []gpu.Fault{{Call: "x", Code: 999, Kind: gpu.FaultOther}}
		}, nil, 3, ""},
		{"an unknown flag", func(*testNode) {}, []string{"--fast"}, 2, "error: unknown flag: --fast"},
		{"an unknown tier", func(*testNode) {}, []string{"--tier", "2"}, 2, "error: --tier 2: is not 0 or 1"},
		{"a broken configuration", func(n *testNode) { n.toml = "[prolog\n[drain]\n" }, nil, 2, "gpuhooks.toml:"},
		{"an unknown check", func(n *testNode) { n.toml = "[checks.gpu-lots]\nprolog = \"warn\"\n" }, nil, 2, `unknown check "gpu-lots" (allowed here: probe-answer, `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			tt.change(n)
			code, _, errs := n.person(tt.args...)
			if code != tt.want || !strings.Contains(errs, tt.stderr) || tt.stderr == "" && errs != "" {
				t.Errorf("status %d, stderr %q; want %d, %q", code, errs, tt.want, tt.stderr)
			}
		})
	}
}

func TestTier0(t *testing.T) {
	n := newNode(t)
	n.answer = append(n.answer[:3], driver.Line{Host: &gpu.Host{}}, driver.Line{Done: &driver.Done{}})
	code, out, _ := n.person("--tier", "0")
	if code != 0 || !strings.Contains(out, "n1: pass: 2 GPUs, driver unknown, tier 0") || !strings.Contains(out, "do not apply (") {
		t.Errorf("status %d\n%s", code, out)
	}
}
