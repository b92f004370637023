package report

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/record"
)

var update = flag.Bool("update", false, "write testdata anew")

func load(t *testing.T, name string) record.Record {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../record/testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r record.Record
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// pages are the jobs whose pages are compared with testdata.
func pages(t *testing.T) map[string][]record.Record {
	t.Helper()
	out := map[string][]record.Record{}
	files, _ := filepath.Glob("../record/testdata/*.json")
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		out[name] = []record.Record{load(t, name)}
	}
	second := load(t, "ecc")
	second.Node = "node02"
	first := load(t, "busy")
	first.Job.NodeCount, second.Job.NodeCount = gpu.Some(3), gpu.Some(3)
	out["nodes"] = []record.Record{second, first}
	return out
}

func TestPages(t *testing.T) {
	for name, records := range pages(t) {
		got := Text(records, Options{})
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs (go test ./internal/report -update):\n%s", path, got)
		}
		for _, line := range strings.Split(got, "\n") {
			if n := utf8.RuneCountInString(line); n > width || strings.HasSuffix(line, " ") {
				t.Errorf("%s: %d columns, or a blank at the end: %q", name, n, line)
			}
		}
	}
}

// The sentences that a page of each job must and must not have.
func TestSentences(t *testing.T) {
	all := pages(t)
	for _, c := range []struct{ name, yes, no string }{
		{"busy", "State: exit code 0", "Notes"},
		{"unused", "did not use 5 of the 8 allocated GPUs (GPU 3, 4, 5, 6, 7). Please ask for fewer GPUs", "Is the code GPU-enabled"},
		{"lowsm", "GPU-Util is 100%, yet on average only 6% of the GPU's processors (SMs) had work", "did not use"},
		{"short", "The run was very short", "Please"},
		{"ecc", "XID 95, process python3: uncorrectable memory error that could not be contained", "harmless"},
		{"ecc", "GPU 1: 2 × uncorrected memory error", "the GPU stays usable"},
		{"contained", "please submit the job again", "Results of this run may be wrong"},
		{"ada", "Hopper and newer GPUs only", "unused"},
		{"nosampler", "The sampler did not run", "unused"},
		{"mig", "about 28.2Wh", "GPU-Util is"},
		{"nodelost", "NODE LOST", ""},
		{"reloaded", "The driver was reloaded", ""},
		{"shared", "may have been shared", ""},
		{"nodes", "the records of 2 of the job's 3 nodes", ""},
		{"nodes", "node02 GPU 1, /dev/nvidia6, 00000000:2B:00.0", ""},
	} {
		page := strings.Join(strings.Fields(Text(all[c.name], Options{})), " ")
		if !strings.Contains(page, c.yes) {
			t.Errorf("%s: %q is missing:\n%s", c.name, c.yes, Text(all[c.name], Options{}))
		}
		if c.no != "" && strings.Contains(page, c.no) {
			t.Errorf("%s: says %q", c.name, c.no)
		}
	}
}

func rulesOf(r record.Record) []string {
	var out []string
	for _, n := range Notes(Newest([]record.Record{r})) {
		out = append(out, n.Rule)
	}
	return out
}

// set changes one value of all GPUs.
func set(r record.Record, field string, v float64) {
	for _, g := range r.GPUs {
		g.Values[field] = record.Value{Value: gpu.Some(v), Source: gpu.SourceGPM}
	}
}

func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		from   string
		change func(*record.Record)
		want   []string
	}{
		"fine":                              {"busy", func(*record.Record) {}, nil},
		"low SM":                            {"lowsm", func(*record.Record) {}, []string{"busy-low-sm", "memory-small"}},
		"a short run gets the fact":         {"lowsm", func(r *record.Record) { r.Elapsed = gpu.Some(20.0); set(*r, "throttle_sw_power_cap_seconds", 0) }, []string{"busy-low-sm"}},
		"a very short run gets nothing":     {"lowsm", func(r *record.Record) { r.Elapsed = gpu.Some(4.0) }, nil},
		"little seen is not held against":   {"unused", func(r *record.Record) { forget(r, 0.3) }, nil},
		"a shared GPU is not judged":        {"unused", func(r *record.Record) { share(r) }, nil},
		"unknown activity is not unused":    {"ada", func(r *record.Record) { delete(r.GPUs[0].Values, gpuUtil) }, nil},
		"utilisation zero without GPM":      {"ada", func(r *record.Record) { set(*r, gpuUtil, 0) }, []string{"unused-gpus"}},
		"SM zero but GPU-Util not":          {"busy", func(r *record.Record) { set(*r, smActive, 0) }, []string{"busy-low-sm"}},
		"tensor unused":                     {"busy", func(r *record.Record) { set(*r, tensor, 0); set(*r, fp32, 0.4) }, []string{"tensor-unused"}},
		"tensor unknown":                    {"busy", func(r *record.Record) { delete(r.GPUs[1].Values, tensor); set(*r, fp32, 0.4) }, nil},
		"heat":                              {"busy", func(r *record.Record) { set(*r, "throttle_hw_thermal_seconds", 30) }, []string{"heat"}},
		"a moment of heat":                  {"busy", func(r *record.Record) { set(*r, "throttle_hw_thermal_seconds", 2) }, nil},
		"power cap":                         {"busy", func(r *record.Record) { set(*r, "throttle_sw_power_cap_seconds", 300) }, []string{"power-cap"}},
		"idle at the end":                   {"busy", func(r *record.Record) { set(*r, idleTail, 200) }, []string{"idle-tail"}},
		"left-over memory":                  {"busy", func(r *record.Record) { set(*r, "memory_used_before_bytes", 2<<30) }, []string{"left-over-memory"}},
		"nothing known, nothing to be said": {"busy", func(r *record.Record) { clear(r.GPUs[0].Values); clear(r.GPUs[1].Values) }, nil},
	} {
		r := load(t, c.from)
		c.change(&r)
		if got := rulesOf(r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// forget makes the samples cover a part of the run only, and leaves no counters.
func forget(r *record.Record, coverage float64) {
	for i := range r.GPUs {
		r.GPUs[i].Quality.Coverage = gpu.Some(coverage)
		v := r.GPUs[i].Values[smActive]
		v.Source = gpu.SourceGPM
		r.GPUs[i].Values[smActive] = v
	}
}

func share(r *record.Record) {
	for i := range r.GPUs {
		r.GPUs[i].Shared = true
	}
}

func TestNewest(t *testing.T) {
	a, b, c := load(t, "busy"), load(t, "busy"), load(t, "busy")
	a.Node = "node09" // the run before the requeue
	b.Job.Restart, c.Job.Restart = 1, 1
	b.Version = "old"
	c.Time = b.Time.Add(time.Second) // an epilog that came twice
	j := Newest([]record.Record{c, a, b})
	if len(j.Records) != 1 || j.Records[0].Version == "old" || j.Earlier != 1 {
		t.Errorf("%d records, %d earlier", len(j.Records), j.Earlier)
	}
}

func TestColour(t *testing.T) {
	r := []record.Record{load(t, "unused")}
	if strings.Contains(Text(r, Options{}), "\x1b") {
		t.Error("colour without being asked")
	}
	if !strings.Contains(Text(r, Options{Color: true}), "\x1b[31m <- unused\x1b[0m") {
		t.Error("no colour")
	}
}

func TestHostileStrings(t *testing.T) {
	r := load(t, "ecc")
	evil := "\x1b]0;owned\x07\r\nroot\u202e"
	r.Node, r.Cluster, r.Job.User, r.Job.Account, r.Job.Partition, r.Quality.Unresolved = evil, evil, evil, evil, evil, evil
	r.GPUs[0].Model, r.GPUs[0].PCI, r.GPUs[0].UUID = evil, evil, evil
	r.Events[0].Process, r.Events[0].Meaning, r.Events[0].PCI = evil, evil, evil
	page := Text([]record.Record{r}, Options{Name: evil})
	if strings.ContainsAny(page, "\x1b\x07\r\u202e") {
		t.Errorf("%q", page)
	}
}

func TestJSON(t *testing.T) {
	d := JSON([]record.Record{load(t, "unused")}, Options{})
	if d.JobID != 4711 || d.GPUs != 8 || d.Unused.Or(-1) != 5 || len(d.Notes) == 0 || len(d.Records) != 1 {
		t.Errorf("%+v", d)
	}
	b, err := json.Marshal(JSON([]record.Record{load(t, "ada")}, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"schema":"gpuhooks.report/1"`, `"sm_active_mean_ratio":null`, `"notes":[]`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s", want)
		}
	}
}
