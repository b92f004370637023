package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/lab/stage"
)

// run runs the program in this process.
func run(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = cli.Run(cli.Env{
		Program: "gpu-prolog", Args: args, Environ: environ, Stdout: &out, Stderr: &err, Now: time.Now,
	}, newCommand)
	return code, out.String(), err.String()
}

// answer is what the issue promises of `resolve --json`.
type answer struct {
	Schema, Verdict, Rule, Reason string
	GPUs                          []struct {
		Index, Minor *int
		UUID, PCI    string
		MIG          *struct {
			GI, CI  int
			Profile string
		}
	}
}

// Environments as people have reported them, on nodes as they have them. What
// the answers must be is tested beside internal/slurm; here that they arrive.
func TestResolveCases(t *testing.T) {
	const cases = "../internal/slurm/testdata/env"
	for name, want := range map[string]struct {
		code    int
		verdict string
		rule    string
		gpus    int
	}{
		"D01-minor-differs-autodetect-nvml": {0, "resolved", "nvml-order", 1},
		"D08-mig-old-driver-form":           {0, "resolved", "uuid", 1},
		"D12-cpu-only-job":                  {0, "none", "", 0},
		"D18-job-four-of-eight":             {0, "resolved", "nvml-order", 4},
		"D22-amd-render-minor":              {3, "cannot-resolve", "", 0},
		"D25-mixed-mig-node-2205-order":     {0, "resolved", "slurmd-G", 1},
	} {
		dir := filepath.Join(cases, name)
		env, err := os.ReadFile(filepath.Join(dir, "env.txt"))
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"resolve", "--gres-conf", filepath.Join(dir, "gres.conf"), "--inventory", filepath.Join(dir, "hardware.json")}
		if _, err := os.Stat(filepath.Join(dir, "slurmd-G.txt")); err == nil {
			args = append(args, "--slurmd-g", filepath.Join(dir, "slurmd-G.txt"))
		}
		environ := strings.Split(string(env), "\n")
		code, stdout, stderr := run(t, environ, append(args, "--json")...)
		var got answer
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%s: %v: %s%s", name, err, stdout, stderr)
		}
		if code != want.code || got.Verdict != want.verdict || got.Rule != want.rule || len(got.GPUs) != want.gpus || got.GPUs == nil || got.Schema != resolveSchema {
			t.Errorf("%s: exit %d: %s", name, code, stdout)
		}
		for _, g := range got.GPUs {
			if g.Index == nil || g.Minor == nil || g.UUID == "" || (g.MIG != nil) != strings.Contains(name, "D08") {
				t.Errorf("%s: %+v", name, g)
			}
		}
		if code, stdout, _ = run(t, environ, args...); code != want.code || !strings.Contains(stdout, "\n") {
			t.Errorf("%s: exit %d: %s", name, code, stdout)
		}
	}
}

func TestResolveText(t *testing.T) {
	dir := "../internal/slurm/testdata/env/D01-minor-differs-autodetect-nvml"
	env, err := os.ReadFile(filepath.Join(dir, "env.txt"))
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := run(t, strings.Split(string(env), "\n"), "resolve", "--gres-conf", dir+"/gres.conf", "--inventory", dir+"/hardware.json")
	want := `job 4711 has 1 of this node's GPUs (by nvml-order)
index  device        PCI           UUID                                      MIG
0      /dev/nvidia2  0000:07:00.0  GPU-00000000-0000-4000-8000-000000000000  -
`
	if code != 0 || !strings.HasPrefix(stdout, want) {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
}

func TestResolveBadInput(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "bad.json"), []byte("{"), 0o644)
	for _, c := range []struct {
		environ []string
		args    []string
		says    string
	}{
		{nil, []string{"resolve", "--inventory", dir + "/none.json"}, "none.json: no such file"},
		{nil, []string{"resolve", "--inventory", dir + "/bad.json"}, "not an inventory"},
		{[]string{"SLURM_JOB_ID=1; reboot"}, []string{"resolve"}, "not a job id"},
		{nil, []string{"resolve", "--colour"}, "unknown flag: --colour"},
		{nil, []string{"resolv"}, "unknown command"},
	} {
		if code, stdout, stderr := run(t, c.environ, c.args...); code != cli.Usage || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit %d, %q, %q", c.args, code, stdout, stderr)
		}
	}
}

// On the node itself the driver is asked.
func TestResolveOnTheNode(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	env := []string{"SLURMD_NODENAME=n1", "SLURM_JOB_ID=4711", "SLURM_JOB_GPUS=2,5", "SLURM_SCRIPT_CONTEXT=prolog_slurmd", "SLURM_CONF=" + s.Path("slurm.conf")}
	r := s.Run("gpu-prolog", env, "resolve", "--json")
	var got answer
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil || r.Code != 0 {
		t.Fatalf("exit %d, %v: %s%s", r.Code, err, r.Stdout, r.Stderr)
	}
	if len(got.GPUs) != 2 || got.GPUs[0].UUID != s.UUIDs[2] || got.GPUs[1].UUID != s.UUIDs[5] || got.Rule != "gres.conf" {
		t.Errorf("%s", r.Stdout)
	}
	if files(s, "4711.0") != "no directory" {
		t.Error("resolve started a run")
	}
}

func TestConfigCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpuhooks.toml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("mode = \"enforce\"\n[drain]\nbrake_min = 5\n")
	if code, stdout, stderr := run(t, nil, "config", "check", "--config", path); code != 0 || stdout != path+": can be used\n" || stderr != "" {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	code, stdout, _ := run(t, nil, "config", "show", "--config", path)
	for _, want := range []string{"mode = \"enforce\"", "brake_min = 5", "brake_window = \"1h0m0s\""} {
		i := strings.Index(stdout, want)
		if i < 0 || code != 0 {
			t.Fatalf("exit %d, %q is not in:\n%s", code, want, stdout)
		}
		line, _, _ := strings.Cut(stdout[i:], "\n")
		if fromFile := strings.HasSuffix(line, "# "+path); fromFile != !strings.Contains(want, "window") {
			t.Errorf("origin of %q", line)
		}
	}
	var shown struct {
		Schema, Path string
		Settings     []struct {
			Key     string
			Value   any
			Default bool
		}
	}
	_, stdout, _ = run(t, nil, "--config", path, "config", "show", "--json")
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil || shown.Path != path || len(shown.Settings) < 30 || shown.Settings[0].Value != "enforce" || shown.Settings[0].Default {
		t.Errorf("%v: %s", err, stdout)
	}

	write("mode = \"strict\"\n[checks.gpu-lots]\nprolog = \"warn\"\n")
	code, _, stderr := run(t, nil, "config", "check", "--config", path)
	if code != cli.Usage || !strings.Contains(stderr, path+":1: mode: \"strict\" is not one of observe, enforce") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	write("[checks.gpu-lots]\nprolog = \"warn\"\n")
	if code, _, stderr := run(t, nil, "config", "check", "--config", path); code != cli.Usage || !strings.Contains(stderr, "unknown check \"gpu-lots\"") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	xids := filepath.Join(t.TempDir(), "xid.toml")
	for _, f := range []struct{ path, text string }{{path, fmt.Sprintf("[paths]\nxid = %q\n", xids)}, {xids, "\n[xid.63]\nseverity = \"bad\"\n"}} {
		if err := os.WriteFile(f.path, []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := run(t, nil, "config", "check", "--config", path); code != cli.Usage || !strings.Contains(stderr, xids+": line 3: [xid.63]: severity \"bad\"") {
		t.Errorf("the site's XID catalogue: status %d, %q", code, stderr)
	}
	if code, _, stderr := run(t, nil, "config", "check", "--config", path+".missing"); code != cli.Usage || !strings.Contains(stderr, "no such file") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := run(t, nil, "config"); code != cli.Usage || !strings.Contains(stderr, "check or show") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
