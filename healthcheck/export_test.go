package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/influxdata/line-protocol/v2/lineprotocol"
)

// exporting is a node that exports.
func exporting(t *testing.T) *testNode {
	t.Helper()
	n := newNode(t)
	n.write("textfile/other.prom", "", 0o644)
	n.toml = fmt.Sprintf("[export]\ntextfile = %q\nlines = %q\n", n.path("textfile"), n.path("health.line"))
	return n
}

// varying are the values that differ from run to run.
var varying = regexp.MustCompile(`(?m)^(gpuhooks_(?:look_timestamp_seconds|look_duration_seconds|check_duration_seconds(?:\{[^}]*\})?)) \S+$`)

func TestPrometheus(t *testing.T) {
	n := exporting(t)
	n.answer[4].GPU.Name = "NVIDIA \"H\\100\"\n"
	n.run()
	if problems := lintExposition(n.read("textfile/gpuhooks.prom")); len(problems) > 0 {
		t.Errorf("healthy: %s", strings.Join(problems, "\n"))
	}
	n.lose()
	n.run()
	text := n.read("textfile/gpuhooks.prom")
	if problems := lintExposition(text); len(problems) > 0 {
		t.Errorf("lost: %s", strings.Join(problems, "\n"))
	}
	for _, want := range []string{
		`gpuhooks_check_result{check="gpu-lost"} 3`,
		`gpuhooks_check_result{check="persistence"} 0`,
		`gpuhooks_verdict_action{action="drain"} 1`,
		`gpuhooks_verdict_action{action="none"} 0`,
		`gpuhooks_drain_braked 0`,
		`gpuhooks_gpu_recent_faults{gpu="0",uuid="GPU-0"} 0`,
		`gpuhooks_gpu_recent_faults{gpu="1",uuid="GPU-1"} 1`,
		`gpuhooks_gpu_up{gpu="0",uuid="GPU-0"} 1`,
		`gpuhooks_gpu_up{gpu="1",uuid="GPU-1"} 0`,
		`gpuhooks_gpu_result{gpu="1",uuid="GPU-1"} 3`,
		`gpuhooks_finding{check="gpu-lost",code="LOST",class="hardware",uuid="GPU-1"} 3`,
		`gpuhooks_gpu_info{gpu="0",uuid="GPU-0",pci="00000000:10:00.0",minor="0",model="NVIDIA \"H\\100\"",serial=""} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("lacks %s in\n%s", want, varying.ReplaceAllString(text, "$1 0"))
		}
	}
	if strings.Contains(text, `gpuhooks_check_result{check="mig-empty"}`) {
		t.Error("a check that does not apply has a result")
	}
	st, err := os.Stat(n.path("textfile/gpuhooks.prom"))
	if err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if entries, err := os.ReadDir(n.path("textfile")); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestHealthLines(t *testing.T) {
	n := exporting(t)
	n.run()
	checks := 0
	d := lineprotocol.NewDecoderWithBytes([]byte(n.read("health.line")))
	for d.Next() {
		m, err := d.Measurement()
		if err != nil || string(m) != "slurm_gpu_health" {
			t.Fatalf("%s, %v", m, err)
		}
		for {
			k, v, err := d.NextTag()
			if err != nil {
				t.Fatal(err)
			}
			if k == nil {
				break
			}
			switch {
			case string(k) == "check":
				checks++
			case string(k) == "cluster" && string(v) != "test", string(k) == "node" && string(v) != "n1":
				t.Errorf("%s=%s", k, v)
			}
		}
		for {
			k, _, err := d.NextField()
			if err != nil {
				t.Fatal(err)
			}
			if k == nil {
				break
			}
		}
		if _, err := d.Time(lineprotocol.Nanosecond, n.now()); err != nil {
			t.Fatal(err)
		}
	}
	if checks < 15 {
		t.Errorf("%d checks in\n%s", checks, n.read("health.line"))
	}
}

// What cannot be exported costs nothing else.
func TestExportFails(t *testing.T) {
	n := exporting(t)
	if err := os.RemoveAll(n.path("textfile")); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := n.run(); code != 0 || !strings.Contains(errs, "the textfile for Prometheus") {
		t.Errorf("status %d, %s", code, errs)
	}
	n.lose()
	if code, _, _ := n.run(); code != 1 || n.read("reason") == "" {
		t.Errorf("status %d, reason %q", code, n.read("reason"))
	}
}

var (
	metricLine = regexp.MustCompile(`^([a-z_]+)(\{[^}]*\})? (\S+)$`)
	labelList  = regexp.MustCompile(`^\{[a-z]+="(?:[^"\\]|\\["\\n])*"(?:,[a-z]+="(?:[^"\\]|\\["\\n])*")*\}$`)
)

// lintExposition is a strict reading of Prometheus' text format, with the rules
// of promtool check metrics that concern gauges.
func lintExposition(text string) []string {
	var out []string
	bad := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if !strings.HasSuffix(text, "\n") {
		bad("no line end at the end")
	}
	helped, typed, seen, family := map[string]bool{}, map[string]bool{}, map[string]bool{}, ""
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		f := strings.SplitN(l, " ", 4)
		switch {
		case strings.HasPrefix(l, "# HELP "):
			if family = f[2]; helped[family] || len(f) < 4 {
				bad("line %d: HELP of %s", i+1, family)
			}
			helped[family] = true
		case strings.HasPrefix(l, "# TYPE "):
			if f[2] != family || f[3] != "gauge" || typed[family] {
				bad("line %d: TYPE of %s", i+1, f[2])
			}
			typed[family] = true
		default:
			m := metricLine.FindStringSubmatch(l)
			if m == nil {
				bad("line %d: %q is no sample", i+1, l)
				continue
			}
			if m[1] != family || !typed[family] {
				bad("line %d: %s outside its family", i+1, m[1])
			}
			if m[2] != "" && !labelList.MatchString(m[2]) {
				bad("line %d: labels %s", i+1, m[2])
			}
			if seen[m[1]+m[2]] {
				bad("line %d: %s%s twice", i+1, m[1], m[2])
			}
			seen[m[1]+m[2]] = true
			if _, err := strconv.ParseFloat(m[3], 64); err != nil {
				bad("line %d: value %q", i+1, m[3])
			}
			for _, unit := range []string{"_total", "_milliseconds", "_ms", "_celsius_degrees"} {
				if strings.HasSuffix(m[1], unit) {
					bad("line %d: %s is no name of a gauge in base units", i+1, m[1])
				}
			}
		}
	}
	return out
}

func TestLintExposition(t *testing.T) {
	for text, problems := range map[string]int{
		"# HELP a x\n# TYPE a gauge\na 1\n":                 0,
		"# HELP a x\n# TYPE a gauge\na{b=\"c\",d=\"\"} 1\n": 0,
		"# HELP a x\n# TYPE a gauge\na 1\na 1\n":            1,
		"# HELP a x\n# TYPE a gauge\na{b=\"c\"d\"} 1\n":     1,
		"a 1\n":                               1,
		"# HELP a x\n# TYPE a gauge\na one\n": 1,
		"# HELP a x\n# TYPE a gauge\n# HELP a x\n":            1,
		"# HELP a_ms x\n# TYPE a_ms gauge\na_ms 1":            2,
		"# HELP a x\n# TYPE a gauge\n\n":                      1,
		"# HELP a x\n# TYPE a gauge\nb 1\n":                   1,
		"# HELP a x\n# TYPE a gauge\na{b=\"c\n\"} 1\n":        2,
		"# HELP a x\n# TYPE a gauge\na{b=\"c\\\\\\\"d\"} 1\n": 0,
	} {
		if got := lintExposition(text); len(got) != problems {
			t.Errorf("%q: %q", text, got)
		}
	}
}
