package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurm"
)

func TestHookDrainsOnce(t *testing.T) {
	n := newNode(t)
	if code, _, errs := n.run(); code != 0 || errs != "" || n.calls() != "" {
		t.Errorf("all is well: status %d, %q", code, errs)
	}
	n.lose()
	code, _, errs := n.run()
	if got := n.read("reason"); code != 1 || got != "[HC] LOST gpu=1 GPU-1" {
		t.Errorf("status %d, reason %q", code, got)
	}
	if !strings.Contains(errs, "gpu-healthcheck: error: gpu-lost: fail: GPU 1 (00000000:20:00.0, /dev/nvidia1, GPU-1): fell off the bus") {
		t.Errorf("stderr %q", errs)
	}
	if got := n.calls(); !strings.Contains(got, "update") {
		t.Errorf("calls %q", got)
	}
	if code, _, _ := n.run(); code != 1 || strings.Contains(n.calls(), "update") {
		t.Errorf("again: status %d, and Slurm was told twice", code)
	}
}

func TestHookRemembersSlurmsVersion(t *testing.T) {
	n := newNode(t)
	n.run()
	if got := n.read("run/memory.json"); !strings.Contains(got, `"slurm":"22.05.8"`) && !strings.Contains(got, `"slurm": "22.05.8"`) {
		t.Errorf("memory: %s", got)
	}
}

func TestHookKeepsForeignReasons(t *testing.T) {
	n := newNode(t)
	n.lose()
	n.write("reason", "fan broken", 0o644)
	if n.run(); n.read("reason") != "fan broken" {
		t.Errorf("reason %q", n.read("reason"))
	}
}

func TestHookObserves(t *testing.T) {
	n := newNode(t)
	n.mode = "observe"
	n.lose()
	code, _, errs := n.run()
	if code != 0 || n.calls() != "" || !strings.Contains(errs, "would drain: LOST gpu=1 GPU-1") {
		t.Errorf("status %d, stderr %q", code, errs)
	}
}

func TestHookUndrains(t *testing.T) {
	n := newNode(t)
	n.toml = "[drain]\ndelay = \"0s\"\nundrain = true\nundrain_runs = 2\nundrain_hold = \"0s\"\n"
	p := n.answer[1].Presence
	p.Control = gpu.Some(false)
	if n.run(); n.read("reason") != "[HC] DEVNODE /dev/nvidiactl is missing" {
		t.Fatalf("reason %q", n.read("reason"))
	}
	p.Control = gpu.Some(true)
	if _, _, errs := n.run(); n.read("reason") == "" || !strings.Contains(errs, "not undrained: 1 of 2 clean runs") {
		t.Errorf("after one clean run: reason %q, %s", n.read("reason"), errs)
	}
	if _, _, errs := n.run(); n.read("reason") != "" || !strings.Contains(errs, "undrained n1") {
		t.Errorf("after two: reason %q, %s", n.read("reason"), errs)
	}
	n.calls()
	if n.run(); n.calls() != "" {
		t.Error("Slurm is asked without a drain of ours")
	}
}

func TestHookNeverUndrainsHardware(t *testing.T) {
	n := newNode(t)
	n.toml = "[drain]\ndelay = \"0s\"\nundrain = true\nundrain_runs = 1\nundrain_hold = \"0s\"\n"
	n.lose()
	n.run()
	n.answer = healthy()
	for range 3 {
		if _, _, errs := n.run(); n.read("reason") == "" {
			t.Fatalf("undrained: %s", errs)
		}
	}
}

// Nothing is asked of a node that is not ours to look at.
func TestHookStaysAway(t *testing.T) {
	tests := []struct {
		name   string
		change func(*testNode)
	}{
		{"switched off", func(n *testNode) { n.write("off", "", 0o644) }},
		{"not enabled", func(n *testNode) { n.toml = "[healthcheck]\nenabled = false\n" }},
		{"no gpu in its Gres", func(n *testNode) { n.write("slurm.conf", "GresTypes=gpu\nNodeName=n1 CPUs=2\n", 0o644) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.lose()
			tt.change(n)
			if code, _, errs := n.run(); code != 0 || n.read("asked") != "" || n.calls() != "" {
				t.Errorf("status %d, stderr %q", code, errs)
			}
		})
	}
}

// Whatever is broken, the hook's status is 0 unless the node is.
func TestHookGoesOn(t *testing.T) {
	tests := []struct {
		name   string
		change func(*testNode)
		says   string
	}{
		{"broken configuration", func(n *testNode) { n.toml = "[drain\n" }, "using the built-in defaults"},
		{"unknown key", func(n *testNode) { n.toml = "[prolog]\ndeadlin = 3\n" }, `unknown key "prolog.deadlin"`},
		{"no probe", func(n *testNode) {
			if err := os.Remove(n.path("probe")); err != nil {
				n.t.Fatal(err)
			}
		}, "probe-answer: error: the probe could not be started"},
		{"a probe that talks nonsense", func(n *testNode) { n.answer = n.answer[3:] }, "probe-answer: error: the probe's answer is not in this version's format"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			tt.change(n)
			if code, _, errs := n.run(); code != 0 || !strings.Contains(errs, tt.says) {
				t.Errorf("status %d, stderr %q", code, errs)
			}
		})
	}
}

func TestSweep(t *testing.T) {
	n := newNode(t)
	dir := runs.Dir(n.path("run"))
	const boot = "11111111-2222-3333-4444-555555555555"
	old := time.Now().Add(-time.Hour)
	start := func(id uint32, boot string, changed time.Time) runs.Name {
		t.Helper()
		name := runs.Name{Job: id}
		j := runs.Job{Schema: runs.JobSchema, BootID: boot, Job: slurm.Job{ID: id, User: "ada", NodeName: "n1"}}
		j.Start = runs.Point{Time: old, Devices: []runs.DevicePoint{{Identity: gpu.Identity{UUID: "GPU-0"}}}}
		if err := dir.Create(name, j); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir.Path(name), changed, changed); err != nil {
			t.Fatal(err)
		}
		return name
	}
	start(17, boot, old) // Slurm knows it
	start(18, boot, time.Now())
	start(19, boot, old)
	start(20, "another", old)
	done := start(21, boot, old)
	if err := dir.MarkDone(done, runs.Mark{BootID: boot}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(dir.Path(done)+"/done", old, old); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := n.run(); code != 0 {
		t.Errorf("status %d, %s", code, errs)
	}
	list, err := dir.List()
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, r := range list {
		left = append(left, r.Name.String())
	}
	if got := strings.Join(left, " "); got != "17.0 18.0" {
		t.Errorf("left: %s", got)
	}
	entries, err := os.ReadDir(n.path("spool/records"))
	if err != nil {
		t.Fatal(err)
	}
	var records []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			records = append(records, e.Name())
		}
	}
	if got := strings.Join(records, " "); got != "19.0.n1.json 20.0.n1.json" {
		t.Errorf("records: %s", got)
	}
	if s := n.read("spool/records/20.0.n1.json"); !strings.Contains(s, "node-lost") && !strings.Contains(s, "node_lost") {
		t.Errorf("another boot's run is not said to be lost: %s", s)
	}
	if n.write("squeue", "#!/bin/sh\nexit 1\n", 0o755); n.read("squeue") == "" {
		t.Fatal("no squeue")
	}
	if err := os.Chtimes(dir.Path(runs.Name{Job: 18}), old, old); err != nil {
		t.Fatal(err)
	}
	if _, _, errs := n.run(); !strings.Contains(errs, "old runs are kept") {
		t.Errorf("Slurm does not answer: %s", errs)
	}
	if list, err := dir.List(); err != nil || len(list) != 2 {
		t.Errorf("removed without asking: %v, %v", list, err)
	}
}

// After a reboot /run is empty: the checkpoint in the spool is all that is left.
func TestSweepOfCheckpoints(t *testing.T) {
	n := newNode(t)
	points := runs.CheckpointsIn(n.path("spool"))
	const boot = "11111111-2222-3333-4444-555555555555"
	put := func(id uint32, boot string) runs.Name {
		t.Helper()
		j := runs.Job{Schema: runs.JobSchema, BootID: boot, Job: slurm.Job{ID: id, User: "ada", NodeName: "n1"}}
		j.Start = runs.Point{Time: time.Now(), Devices: []runs.DevicePoint{{Identity: gpu.Identity{UUID: "GPU-0"}}}}
		b, err := runs.Checkpoint{Job: j, Sums: runs.Sums{Schema: runs.SumsSchema, BootID: boot}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		name := runs.Name{Job: id}
		n.write("spool/checkpoints/"+name.String()+".json", string(b), 0o600)
		return name
	}
	live := put(17, boot)
	if err := runs.Dir(n.path("run")).Create(live, runs.Job{Schema: runs.JobSchema, BootID: boot}); err != nil {
		t.Fatal(err)
	}
	put(18, boot)      // its run is gone, so it is closed
	put(19, "another") // the node went down
	put(20, "another") // its epilog was quicker
	n.write("spool/records/20.0.n1.json", "{}", 0o600)
	n.write("spool/checkpoints/21.0.json", "{half", 0o600)
	if code, _, errs := n.run(); code != 0 || !strings.Contains(errs, "job 19: no epilog has closed it") {
		t.Errorf("status %d, %s", code, errs)
	}
	if left, err := points.List(); err != nil || len(left) != 1 || left[0] != live {
		t.Errorf("left: %v, %v", left, err)
	}
	if s := n.read("spool/records/19.0.n1.json"); !strings.Contains(s, `"node-lost"`) {
		t.Errorf("record: %s", s)
	}
	if n.read("spool/records/20.0.n1.json") != "{}" {
		t.Error("a record was written over")
	}
	if n.read("spool/records/18.0.n1.json") != "" {
		t.Error("a record of a closed run")
	}
}
