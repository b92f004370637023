package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmctl"
	"gpuhooks/internal/verdict"
)

// What is not certain is not remembered.
func TestNotRemembered(t *testing.T) {
	for name, change := range map[string]func(n *testNode){
		"no AutoDetect":         func(n *testNode) { n.gres("Name=gpu File=/dev/nvidia[0-7]\n") },
		"a card is gone by now": func(n *testNode) { n.lose(3) },
		"no number to compare":  func(n *testNode) { n.write(n.cfg.Slurm.Conf, "NodeName=n2 Gres=gpu:8\n") },
		"half an answer":        func(n *testNode) { n.reading.Answer = gpu.AnswerPartial },
		"no slurmd":             func(n *testNode) { _ = os.RemoveAll(filepath.Join(n.cfg.Paths.Root, "proc/4242")) },
		"an order that depends on the version": func(n *testNode) {
			n.write(filepath.Join(n.cfg.Paths.Root, "proc/driver/nvidia-caps/mig-minors"), "gpu7/gi1/access 957\ngpu7/gi1/ci0/access 958\n")
			n.reading.Node.GPUs[0].Instances = []gpu.Instance{{GI: 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := autoNode(t, "nvml")
			change(n)
			n.learn(wrapperPID)
			if _, err := os.Stat(filepath.Join(n.cfg.Paths.Run, "devices.json")); err == nil {
				t.Error("there is a devices.json")
			}
		})
	}
}

// slurmdSays is a slurmd whose -G prints cards in that order of minors, and
// counts how often it is asked.
func (n *testNode) slurmdSays(minors ...int) (c slurmctl.Client, asked func() int) {
	n.t.Helper()
	dir := n.t.TempDir()
	count := filepath.Join(dir, "asked")
	script := "#!/bin/sh\necho >>" + count + "\n"
	for _, m := range minors {
		script += fmt.Sprintf("echo 'slurmd: Gres Name=gpu Type=h100 Count=1 Index=%d ID=7696487 File=/dev/nvidia%d' >&2\n", m, m)
	}
	path := filepath.Join(dir, "slurmd")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		n.t.Fatal(err)
	}
	return slurmctl.Client{Slurmd: path, Timeout: 10 * time.Second}, func() int {
		b, _ := os.ReadFile(count)
		return len(b)
	}
}

// What slurmd itself detects wins over what was computed, and is asked for once.
func TestAskSlurmd(t *testing.T) {
	n := autoNode(t, "nvml")
	c, asked := n.slurmdSays(0, 1, 2, 3, 4, 5, 7, 6)
	n.learn(wrapperPID)
	ask := func(l *Look) {
		if err := l.AskSlurmd(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	n.below(wrapperPID, verdict.HealthCheck, ask)
	n.below(wrapperPID, verdict.HealthCheck, ask)
	n.learn(wrapperPID)
	if asked() != 1 {
		t.Errorf("asked %d times", asked())
	}
	n.lose(3)
	r := n.job(wrapperPID, "6")
	if r.Verdict != slurm.Resolved || r.GPUs[0].UUID != n.card(0) || !strings.Contains(r.Reason, "(slurmd -G at 2026-") {
		t.Errorf("%+v", r)
	}
	n.process(wrapperPID, "prolog.sh", 4243, startTicks+1000)
	n.startSlurmd(4243, startTicks+900)
	c, asked = n.slurmdSays(0, 1, 2, 3, 5, 7, 6)
	err := n.below(wrapperPID, verdict.HealthCheck).AskSlurmd(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "8 GPUs, and the list has 7") || asked() != 1 {
		t.Errorf("a new slurmd that sees 7: %v; asked %d times", err, asked())
	}
	if r := n.job(wrapperPID, "6"); r.Verdict != slurm.CannotResolve {
		t.Errorf("the list of the slurmd before counts: %+v", r)
	}
}

// A slurmd -G that fails is not asked again at every health check, and never
// where the driver itself does not answer.
func TestAskSlurmdFails(t *testing.T) {
	n := autoNode(t, "nvml")
	c, asked := n.slurmdSays()
	var errs []error
	ask := func(l *Look) { errs = append(errs, l.AskSlurmd(t.Context(), c)) }
	n.below(wrapperPID, verdict.HealthCheck, ask)
	n.below(wrapperPID, verdict.HealthCheck, ask)
	if asked() != 1 || errs[0] == nil || errs[1] != nil {
		t.Errorf("asked %d times: %v", asked(), errs)
	}
	n.learn(wrapperPID)
	if r := n.job(wrapperPID, "5"); r.Rule != slurm.ByRemembered {
		t.Errorf("the computed list: %+v", r)
	}
	n.now = n.now.Add(2 * askAgain)
	n.below(wrapperPID, verdict.HealthCheck, ask)
	if asked() != 2 {
		t.Errorf("asked %d times after an hour", asked())
	}
	n.now = n.now.Add(2 * askAgain)
	n.reading.Answer = gpu.AnswerNone
	n.below(wrapperPID, verdict.HealthCheck, ask)
	n.reading.Answer, n.reading.Elapsed = gpu.AnswerWhole, 2*quick
	n.below(wrapperPID, verdict.HealthCheck, ask)
	n.reading.Elapsed = 0
	store := Store{Dir: n.cfg.Paths.Run}
	d, err := store.loadDevices()
	if err != nil {
		t.Fatal(err)
	}
	n.write(filepath.Join(n.cfg.Paths.Root, "proc/777/stat"), "777 (slurmd) D 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 1 1234 5 1")
	if err := store.keepDevices(d.deviceKey, func(d *Devices) { d.Stuck = 777 }); err != nil {
		t.Fatal(err)
	}
	n.below(wrapperPID, verdict.HealthCheck, ask)
	if asked() != 2 {
		t.Errorf("asked %d times, with a driver that does not answer, is slow, or holds another slurmd -G", asked())
	}
}
