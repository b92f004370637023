package slurm

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuhooks/internal/slurmconf"
)

// readCase loads a folder of testdata/env, real environments with their node.
func readCase(t *testing.T, name string) (Job, Inventory, slurmconf.Gres, Options) {
	t.Helper()
	dir := filepath.Join("testdata/env", name)
	read := func(file string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	job, err := FromEnv(strings.Split(string(read("env.txt")), "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var inv Inventory
	if err := json.Unmarshal(read("hardware.json"), &inv); err != nil {
		t.Fatal(err)
	}
	gres, err := slurmconf.ParseGres("gres.conf", read("gres.conf"))
	if err != nil {
		t.Fatal(err)
	}
	var o Options
	b, err := os.ReadFile(filepath.Join(dir, "slurmd-G.txt"))
	if err == nil {
		o.Detected, err = slurmconf.ParseSlurmdG(b)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return job, inv, gres, o
}

// TestCases gives what expected.md of each case says. gpus is NVML indices.
func TestCases(t *testing.T) {
	tests := map[string]struct {
		verdict Verdict
		rule    Rule
		gpus    []int
		mig     [2]int // gi, ci of the only GPU; zero when whole
		shared  bool
		says    string // part of reason or warnings
	}{
		"D01-minor-differs-autodetect-nvml":   {verdict: Resolved, rule: ByNVMLOrder, gpus: []int{0}},
		"D04-minor-differs-autodetect-nvidia": {verdict: Resolved, rule: ByUUID, gpus: []int{2}},
		"D05-slurm-2011-has-minor-numbers":    {verdict: Resolved, rule: ByMinor, gpus: []int{0}},
		"D08-mig-old-driver-form":             {verdict: Resolved, rule: ByUUID, gpus: []int{1}, mig: [2]int{9, 0}},
		"D11-mps-percentage":                  {verdict: Resolved, rule: ByGresConf, gpus: []int{1}, shared: true},
		"D12-cpu-only-job":                    {verdict: NoGPUs},
		"D13-autodetect-no-device-ordinal":    {verdict: Resolved, rule: ByNVMLOrder, gpus: []int{2, 3}},
		"D14-no-gpu-env-flag":                 {verdict: Resolved, rule: ByGresConf, gpus: []int{1}},
		"D18-job-four-of-eight":               {verdict: Resolved, rule: ByNVMLOrder, gpus: []int{0, 2, 3, 6}},
		"D20-sloppy-separators":               {verdict: Resolved, rule: ByNVMLOrder, gpus: []int{1, 2}},
		"D22-amd-render-minor":                {verdict: CannotResolve, says: "not NVIDIA's: /dev/dri/renderD128"},
		"D24-mixed-mig-node-2411-order":       {verdict: Resolved, rule: ByNVMLOrder, gpus: []int{1}},
		"D25-mixed-mig-node-2205-order":       {verdict: Resolved, rule: BySlurmdG, gpus: []int{1}},
		"D26-exclusive-job-asked-no-gpu":      {verdict: Resolved, rule: ByNVMLOrder, gpus: []int{0, 1, 2, 3}},
		"D27-pod-sees-more-than-gres":         {verdict: CannotResolve, says: "ask for the UUID from inside"},
		"D28-container-gets-global-mask":      {verdict: Resolved, rule: ByNVMLOrder, gpus: []int{4, 5, 6, 7}, says: "numbers beyond the 4 visible GPUs"},
		"D31-spank-variables-are-user-input":  {verdict: Resolved, rule: ByNVMLOrder, gpus: []int{1}},
	}
	dirs, err := os.ReadDir("testdata/env")
	if err != nil || len(dirs) != len(tests) {
		t.Fatalf("%d cases for %d tests, %v", len(dirs), len(tests), err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			job, inv, gres, o := readCase(t, name)
			r := Resolve(job, inv, gres, o)
			if r.Verdict != tt.verdict || r.Rule != tt.rule || r.Shared != tt.shared {
				t.Errorf("%s by %q, shared %v: %s", r.Verdict, r.Rule, r.Shared, r.Reason)
			}
			var got []int
			for _, g := range r.GPUs {
				i, ok := g.Index.Get()
				if !ok {
					t.Error("a GPU without index")
				}
				got = append(got, i)
			}
			if !slices.Equal(got, tt.gpus) {
				t.Errorf("GPUs %v, want %v", got, tt.gpus)
			}
			if tt.mig != [2]int{} {
				if m := r.GPUs[0].MIG; m == nil || m.GI != tt.mig[0] || m.CI != tt.mig[1] || m.Profile != "1g.5gb" {
					t.Errorf("instance %+v, want %v", m, tt.mig)
				}
			}
			said := r.Reason + "\n" + strings.Join(r.Warnings, "\n")
			if !strings.Contains(said, tt.says) {
				t.Errorf("%q does not say %q", said, tt.says)
			}
			if strings.Contains(strings.ToLower(said), "lost") {
				t.Errorf("%q: who cannot resolve must not say that a GPU is lost", said)
			}
		})
	}
}

// The card is named in every way in which a person may look for it.
func TestCaseIdentity(t *testing.T) {
	job, inv, gres, o := readCase(t, "D01-minor-differs-autodetect-nvml")
	b, err := json.Marshal(Resolve(job, inv, gres, o))
	if err != nil {
		t.Fatal(err)
	}
	want := `"gpus":[{"index":0,"minor":2,"uuid":"GPU-00000000-0000-4000-8000-000000000000","pci":"0000:07:00.0","name":"NVIDIA A100-SXM4-40GB","mig":null}]`
	if !strings.Contains(string(b), want) {
		t.Errorf("%s\nlacks %s", b, want)
	}
}

// Only slurmd -G tells the order of a mixed node before 23.02.7.
func TestCaseD25WithoutSlurmdG(t *testing.T) {
	job, inv, gres, _ := readCase(t, "D25-mixed-mig-node-2205-order")
	r := Resolve(job, inv, gres, Options{})
	if r.Verdict != CannotResolve || len(r.GPUs) != 0 || !strings.Contains(r.Reason, "slurmd -G") {
		t.Errorf("%+v", r)
	}
	inv.Slurm = ""
	if r := Resolve(job, inv, gres, Options{}); r.Verdict != CannotResolve || !strings.Contains(r.Reason, "version") {
		t.Errorf("unknown version: %+v", r)
	}
}
