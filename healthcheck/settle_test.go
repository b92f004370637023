package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/node"
)

const undrainSoon = "[drain]\ndelay = \"0s\"\nundrain = true\nundrain_runs = 2\nundrain_hold = \"0s\"\n"

// control says whether /dev/nvidiactl is there: a fault of class config.
func (n *testNode) control(there bool) { n.answer[1].Presence.Control = gpu.Some(there) }

// later lets time pass.
func (n *testNode) later(d time.Duration) {
	before := n.now
	n.now = func() time.Time { return before().Add(d) }
}

func (n *testNode) reboot() {
	n.t.Helper()
	n.write("root/proc/sys/kernel/random/boot_id", "99999999-2222-3333-4444-555555555555\n", 0o644)
	if err := os.RemoveAll(n.path("run")); err != nil {
		n.t.Fatal(err)
	}
}

func TestHookAsksSlurmOnlyWhenItMatters(t *testing.T) {
	n := newNode(t)
	n.lose()
	n.run()
	n.calls()
	if code, _, errs := n.run(); code != 1 || n.calls() != "" || !strings.Contains(errs, "n1 is drained by us since") {
		t.Errorf("nothing has changed, but Slurm was asked; status %d, %s", code, errs)
	}
	n.later(2 * time.Minute)
	if code, _, _ := n.run(); code != 1 || n.calls() != "scontrol --oneliner show node n1" {
		t.Error("Slurm was not asked whether it still stands")
	}
	n.later(2 * time.Minute)
	n.environ = append(n.environ, "SLURM_NODE_IS_HEALTHY=no")
	if code, _, _ := n.run(); code != 1 || n.calls() != "" {
		t.Error("slurmd has told it, but Slurm was asked")
	}
	n.write("reason", "", 0o644) // somebody resumes the node as it is
	n.environ[1] = "SLURM_NODE_IS_HEALTHY=yes"
	if code, _, _ := n.run(); code != 1 || n.read("reason") != "[HC] LOST gpu=1 GPU-1" {
		t.Errorf("not drained again: %q", n.read("reason"))
	}
}

// A person gives the node back, and at once something else breaks.
func TestAnotherFaultIsAskedAbout(t *testing.T) {
	n := newNode(t)
	n.control(false)
	n.run()
	n.control(true)
	n.write("reason", "", 0o644)
	n.calls()
	n.answer[1].Presence.ModuleLoaded = gpu.Some(false)
	if code, _, _ := n.run(); code != 1 || !strings.HasPrefix(n.read("reason"), "[HC] NODRIVER") {
		t.Errorf("status %d, reason %q", code, n.read("reason"))
	}
}

func TestUndrainAfterReboot(t *testing.T) {
	n := newNode(t)
	n.toml = undrainSoon
	n.control(false)
	n.run()
	n.reboot()
	n.control(true)
	if n.run(); n.read("reason") == "" {
		t.Error("undrained after one clean run")
	}
	if n.run(); n.read("reason") != "" {
		t.Errorf("the drain of the boot before is forgotten: %q", n.read("reason"))
	}
}

// What an earlier version wrote, or what was forgotten, is known by its reason.
func TestUndrainOfUnremembered(t *testing.T) {
	tests := []struct {
		name, reason string
		undrained    bool
	}{
		{"as we write it", "[HC] DEVNODE /dev/nvidiactl is missing", true},
		{"with a check's name", "[HC] device-nodes /dev/nvidiactl is missing", true},
		{"of hardware", "[HC] LOST gpu=1 GPU-1", false},
		{"hardware behind another", "[HC] DEVNODE /dev/nvidiactl is missing; LOST gpu=1 GPU-1", false},
		{"an XID", "[HC] XID95 gpu=1 GPU-1", false},
		{"a code of another version", "[HC] FLUXCAP gpu=1 GPU-1", false},
		{"with a person's note", "[HC] DEVNODE /dev/nvidiactl is missing; was: new fan", false},
		{"a person's", "fan broken", false},
		{"NHC's", "NHC: check_hw_gm", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.toml = undrainSoon
			n.write("reason", tt.reason, 0o644)
			for range 4 {
				n.run()
			}
			if got := n.read("reason") == ""; got != tt.undrained {
				t.Errorf("undrained: %t", got)
			}
			if calls := strings.Count(n.read("calls"), "show"); calls > 4 {
				t.Errorf("Slurm was asked %d times", calls)
			}
		})
	}
}

// Once a person has changed our reason, the node is his, even if he changes it back.
func TestHandsOffEditedReasons(t *testing.T) {
	n := newNode(t)
	n.toml = undrainSoon
	n.control(false)
	n.run()
	ours := n.read("reason")
	n.control(true)
	n.run()
	n.write("reason", ours+", I look at it, Bob", 0o644)
	if _, _, errs := n.run(); !strings.Contains(errs, "somebody has changed the reason") {
		t.Errorf("said: %s", errs)
	}
	n.write("reason", ours, 0o644)
	for range 3 {
		n.later(time.Hour)
		if n.run(); n.read("reason") == "" {
			t.Fatal("undrained behind a person's back")
		}
	}
	n.write("reason", "", 0o644) // he gives it back
	n.later(time.Hour)
	n.run()
	n.control(false)
	n.run()
	n.control(true)
	n.run()
	if n.run(); n.read("reason") != "" {
		t.Errorf("the next drain is not ours any more: %q", n.read("reason"))
	}
}

// A card that fails while the node is drained for something harmless.
func TestHardwareFailsDuringADrain(t *testing.T) {
	n := newNode(t)
	n.toml = undrainSoon
	n.control(false)
	n.run()
	n.lose()
	n.run()
	n.answer = healthy()
	for range 4 {
		if n.run(); n.read("reason") == "" {
			t.Fatal("undrained although a card had failed")
		}
	}
}

func TestOneHealthCheckAtATime(t *testing.T) {
	n := newNode(t)
	n.lose()
	store := node.Store{Dir: n.path("run")}
	release, alone, err := store.Alone("healthcheck.lock", limit, n.now())
	if err != nil || !alone {
		t.Fatal(alone, err)
	}
	if code, _, errs := n.run(); code != 0 || n.read("asked") != "" || !strings.Contains(errs, "another health check is at work") {
		t.Errorf("status %d, %s", code, errs)
	}
	n.later(time.Minute)
	if code, _, errs := n.run(); code != 1 || !strings.Contains(errs, "going on without it") {
		t.Errorf("a frozen one is waited for: status %d, %s", code, errs)
	}
	release()
	if code, _, errs := n.run(); code != 1 || strings.Contains(errs, "without it") {
		t.Errorf("status %d, %s", code, errs)
	}
}

// The brake holds at each run, and each says so; when it lets go the node is drained.
func TestBrakedIsDrainedLater(t *testing.T) {
	n := newNode(t)
	n.lose()
	others := ""
	for _, o := range []string{"n2", "n3", "n4"} {
		others += "echo '" + o + "|drained|" + n.now().UTC().Format("2006-01-02T15:04:05") + "|root|[HC] LOST gpu=0 GPU-9'\n"
	}
	n.write("sinfo", "#!/bin/sh\necho 'n1|idle|Unknown|root|none'\n"+others, 0o755)
	for range 2 {
		if code, _, errs := n.run(); code != 0 || n.read("reason") != "" || !strings.Contains(errs, "the brake allows 3") {
			t.Errorf("status %d, %s", code, errs)
		}
	}
	n.write("sinfo", "#!/bin/sh\necho 'n1|idle|Unknown|root|none'\n", 0o755)
	if code, _, _ := n.run(); code != 1 || n.read("reason") != "[HC] LOST gpu=1 GPU-1" {
		t.Errorf("status %d, reason %q", code, n.read("reason"))
	}
}
