package main

import (
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
)

func TestGate(t *testing.T) {
	n := newNode(t)
	n.environ = nil // systemd sets no SLURMD_NODENAME
	if code, out, errs := n.run("gate"); code != 0 || n.calls() != "" || errs != "" {
		t.Errorf("all is well: status %d, %s%s", code, out, errs)
	}
	n.lose()
	if code, out, _ := n.run("gate"); code != 0 || n.read("reason") != "[HC] LOST gpu=1 GPU-1" || !strings.Contains(out, "gpu-lost: fail") {
		t.Errorf("status %d, reason %q, %s", code, n.read("reason"), out)
	}
}

// slurmctld may be down as well: then the health check at slurmd's start drains.
func TestGateWithoutSlurm(t *testing.T) {
	n := newNode(t)
	n.lose()
	scontrol := n.read("scontrol")
	n.write("scontrol", "#!/bin/sh\nexit 1\n", 0o755)
	n.environ = nil
	if code, _, errs := n.run("gate"); code != 0 || !strings.Contains(errs, "not drained: scontrol show node") {
		t.Errorf("status %d, %s", code, errs)
	}
	n.write("scontrol", scontrol, 0o755)
	n.environ = []string{"SLURMD_NODENAME=n1"}
	if code, _, _ := n.run(); code != 1 || n.read("reason") != "[HC] LOST gpu=1 GPU-1" {
		t.Errorf("status %d, reason %q", code, n.read("reason"))
	}
}

func TestGateWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.environ = nil
	n.answer[1].Presence.Control = gpu.Some(false)
	n.run("gate", "--wait", "0s")
	if n.read("reason") != "[HC] DEVNODE /dev/nvidiactl is missing" || strings.Count(n.read("asked"), "asked") != 1 {
		t.Errorf("without waiting: reason %q, %s", n.read("reason"), n.read("asked"))
	}
	n.write("reason", "", 0o644)
	n.configure()
	// The device node comes with the third look.
	whole, broken := n.path("whole"), n.path("answer")
	n.answer[1].Presence.Control = gpu.Some(true)
	n.person("--cached") // writes the answer
	n.write("whole", n.read("answer"), 0o644)
	n.answer[1].Presence.Control = gpu.Some(false)
	n.write("asked", "", 0o644)
	n.write("probe", "#!/bin/sh\necho asked >>"+n.path("asked")+"\n[ $(wc -l <"+n.path("asked")+") -ge 3 ] && exec cat "+whole+"\ncat "+broken+"\n", 0o755)
	code, _, errs := n.run("gate", "--wait", "30s")
	if code != 0 || n.read("reason") != "" || strings.Count(errs, "waiting: device-nodes") != 1 || strings.Count(n.read("asked"), "asked") != 3 {
		t.Errorf("status %d, reason %q, %s%s", code, n.read("reason"), errs, n.read("asked"))
	}
	n.lose() // a card that is lost does not come back: nobody waits for it
	n.write("asked", "", 0o644)
	n.write("probe", "#!/bin/sh\necho asked >>"+n.path("asked")+"\ncat "+broken+"\n", 0o755)
	n.run("gate", "--wait", "30s")
	if strings.Count(n.read("asked"), "asked") != 1 {
		t.Errorf("waited for a lost card: %s", n.read("asked"))
	}
	if code, _, _ := n.run("gate", "--wait", "2h"); code != 2 {
		t.Errorf("status %d", code)
	}
}
