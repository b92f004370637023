//go:build cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/sim"
)

// acceptNode is a simulated node and the script beside a gpu-probe.
type acceptNode struct {
	*sim.Node
	script, probe string
}

func newAcceptNode(t *testing.T, profile string) acceptNode {
	t.Helper()
	dir := t.TempDir()
	// The question of rights is asked as nobody, who must reach the library.
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	n, err := sim.NewNode(dir, profile)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	a := acceptNode{n, filepath.Join(bin, "gpu-acceptance"), filepath.Join(bin, "gpu-probe")}
	exe, err := os.Executable() // which is gpu-probe when it is started as such
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, a.probe); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../scripts/gpu-acceptance")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.script, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return a
}

// run runs the script and returns its document, table, messages and status.
func (a acceptNode) run(t *testing.T, args ...string) (doc acceptance, table, said string, status int) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.json")
	cmd := exec.Command(a.script, append([]string{"--nvml", a.Library(), "--root", a.Root(), "--for", "1", "--out", out}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(out); err == nil {
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	}
	return doc, stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// group asks one group and returns its answers, also those before a hang.
func (a acceptNode) group(t *testing.T, name string, limit time.Duration) map[string]answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, a.probe, "accept", "--group", name, "--for", "1s", "--nvml", a.Library(), "--root", a.Root()).Output()
	if err != nil && ctx.Err() == nil {
		t.Fatalf("accept --group %s: %v", name, err)
	}
	got := map[string]answer{}
	for line := range strings.Lines(string(out)) {
		var one answer
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got[one.ID] = one
	}
	return got
}

func TestAcceptanceWithoutGPM(t *testing.T) {
	t.Parallel()
	n := newAcceptNode(t, "rtx4000-ada")
	got := n.group(t, "gpm", 20*time.Second)
	for id, a := range n.group(t, "idle", 20*time.Second) {
		got[id] = a
	}
	for id, want := range map[string]string{
		"gpm-streaming": unsupported, "gpm-gap": unsupported, "gpm-cumulative": unsupported, "pairs-idle": unsupported,
		"gpm-idle": unsupported, "gpm-support": answered, "gpm-cost": answered, "energy-idle": answered, "throttle-idle": answered,
	} {
		if got[id].State != want {
			t.Errorf("%s: %q (%s), want %s", id, got[id].State, got[id].Answer, want)
		}
	}
	if a := got["gpm-support"].Answer; a != "the driver says no; a sample answers NOT_SUPPORTED" {
		t.Errorf("gpm-support: %s", a)
	}
}

func TestAcceptanceSamplesMIGInstances(t *testing.T) {
	t.Parallel()
	n := newAcceptNode(t, "dgx-h100")
	if err := n.Set("gpu.0.mig.mode=true", "gpu.0.mig.0=gi=1,ci=0,profile=3g.40gb,start=0,size=4,uuid=MIG-1f5d6a2c-0000-5000-8000-000000000001"); err != nil {
		t.Fatal(err)
	}
	if a := n.group(t, "gpm", 20*time.Second)["gpm-mig"]; a.Answer != "whole GPU SUCCESS, instance gi=1 ci=0 3g.40gb SUCCESS" {
		t.Errorf("gpm-mig: %s: %s", a.State, a.Answer)
	}
}

func TestAcceptanceWithoutDriver(t *testing.T) {
	t.Parallel()
	n := newAcceptNode(t, "rtx4000-ada")
	if err := n.Set("driver.loaded=false"); err != nil {
		t.Fatal(err)
	}
	_, table, said, status := n.run(t)
	if status != 3 || table != "" || !strings.Contains(said, "gpu-acceptance: error: the NVIDIA driver does not answer: nvmlInit_v2: no-driver") {
		t.Errorf("status %d, table %q, said: %s", status, table, said)
	}
}

// A call that never returns costs what hangs on it and nothing else.
func TestAcceptanceHang(t *testing.T) {
	t.Parallel()
	n := newAcceptNode(t, "dgx-h100")
	if err := n.Set("call.nvmlGpmSampleGet=hang"); err != nil {
		t.Fatal(err)
	}
	got := n.group(t, "idle", 3*time.Second)
	if got["energy-idle"].State != answered || got["throttle-idle"].State != answered || got["pairs-idle"].State != "" {
		t.Errorf("beside a hanging GPM: %v", got)
	}
	path := filepath.Join(t.TempDir(), "lines")
	var lines bytes.Buffer
	for _, a := range []answer{got["energy-idle"], lostGroup("idle", 124, "")} {
		if err := json.NewEncoder(&lines).Encode(a); err != nil {
			t.Fatal(err)
		}
	}
	lines.WriteString(`{"id":"pairs-idle","st`) // killed while it wrote
	if err := os.WriteFile(path, lines.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := mergeAnswers(path, true, &table); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table.String()) {
		switch {
		case strings.Contains(line, "GPM pairs against one long pair, without"):
			if !strings.Contains(line, "FAILED: no answer within its time") {
				t.Error(line)
			}
		case strings.Contains(line, "integral of power, without"):
			if strings.Contains(line, "FAILED") {
				t.Error(line)
			}
		}
	}
}
