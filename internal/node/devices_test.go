package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/verdict"
)

// The processes of the node: slurmd, the wrapper of a hook below it, and a
// hook below slurmstepd (PrologFlags=RunInJob).
const (
	slurmdPID, wrapperPID, stepdPID = 4242, 4300, 4400
	startTicks                      = 5000
)

// autoNode has eight cards that slurmd detects, whose minors run against NVML's
// order.
func autoNode(t *testing.T, auto string) *testNode {
	t.Helper()
	n := newNode(t)
	n.write(n.cfg.Slurm.Conf, "ClusterName=test\nSlurmdPidFile="+filepath.Join(n.cfg.Paths.Root, "slurmd.pid")+"\nNodeName=n1 Gres=gpu:8\n")
	n.gres("AutoDetect=" + auto + "\n")
	n.reading.Node.GPUs, n.reading.Node.Presence.Proc = nil, nil
	n.reading.Node.Presence.DeviceMinors = nil
	for i := range 8 {
		g := gpu.GPU{Complete: true, Identity: gpu.Identity{
			Index: i, Minor: gpu.Some(7 - i), UUID: fmt.Sprintf("GPU-%08d-0000-4000-8000-000000000000", i), PCI: fmt.Sprintf("00000000:%d0:00.0", i+1),
		}}
		n.reading.Node.GPUs = append(n.reading.Node.GPUs, g)
		n.reading.Node.Presence.Proc = append(n.reading.Node.Presence.Proc, gpu.ProcGPU{Address: g.PCI, UUID: g.UUID, Minor: g.Minor})
		n.reading.Node.Presence.DeviceMinors = append(n.reading.Node.Presence.DeviceMinors, i)
	}
	n.reading.Node.Driver.Count = gpu.Some(8)
	n.startSlurmd(slurmdPID, startTicks)
	n.process(wrapperPID, "prolog.sh", slurmdPID, startTicks+100)
	n.process(stepdPID, "slurmstepd", 1, startTicks+200)
	return n
}

func (n *testNode) gres(text string) {
	n.write(filepath.Join(filepath.Dir(n.cfg.Slurm.Conf), "gres.conf"), text)
}

func (n *testNode) process(pid int, comm string, parent int, start uint64) {
	n.write(filepath.Join(n.cfg.Paths.Root, "proc", fmt.Sprint(pid), "stat"),
		fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 1234 5 18446744073709551615", pid, comm, parent, start))
}

func (n *testNode) startSlurmd(pid int, start uint64) { n.process(pid, "slurmd", 1, start) }

// lose takes card i from the node as a driver does that was started anew for the
// others: NVML counts those behind it one less.
func (n *testNode) lose(i int) {
	gpus := append([]gpu.GPU{}, n.reading.Node.GPUs[:i]...)
	for _, g := range n.reading.Node.GPUs[i+1:] {
		g.Index--
		gpus = append(gpus, g)
	}
	n.reading.Node.GPUs = gpus
	p := n.reading.Node.Presence.Proc
	n.reading.Node.Presence.Proc = append(append([]gpu.ProcGPU{}, p[:i]...), p[i+1:]...)
}

// below looks as a hook whose parent is that process, and does what is done with
// the look.
func (n *testNode) below(parent int, hook verdict.Hook, do ...func(*Look)) *Look {
	n.t.Helper()
	opt := n.options(hook)
	opt.proc, opt.parent = host.FS(n.cfg.Paths.Root), parent
	l := read(context.Background(), n.cfg, opt, n.ask)
	for _, f := range do {
		f(l)
	}
	n.now = n.now.Add(time.Second)
	return l
}

// learn is a hook that judges, and so remembers.
func (n *testNode) learn(parent int) *Look {
	n.t.Helper()
	return n.below(parent, verdict.HealthCheck, func(l *Look) {
		l.Judge(nil, Jobs{})
		for _, err := range l.Problems {
			n.t.Errorf("problem: %v", err)
		}
	})
}

// job is whose the GPUs are of a job's prolog below that process.
func (n *testNode) job(parent int, gpus string) slurm.Resolution {
	n.t.Helper()
	job, err := slurm.FromEnv([]string{"SLURM_JOB_ID=7", "SLURMD_NODENAME=n1", "SLURM_SCRIPT_CONTEXT=prolog_slurmd", "SLURM_JOB_GPUS=" + gpus, "CUDA_VISIBLE_DEVICES=" + gpus})
	if err != nil {
		n.t.Fatal(err)
	}
	return n.below(parent, verdict.Prolog).Resolve(job)
}

func (n *testNode) card(i int) string { return fmt.Sprintf("GPU-%08d-0000-4000-8000-000000000000", i) }

// A card that is gone keeps its place in Slurm's list: those behind it do not
// move up, as they do in NVML's.
func TestLostCardKeepsItsPlace(t *testing.T) {
	for auto, third := range map[string]int{"nvml": 3, "nvidia": 4} { // place 3 is this card
		t.Run(auto, func(t *testing.T) {
			n := autoNode(t, auto)
			n.learn(wrapperPID)
			n.lose(third)
			for place := range 8 {
				want := place
				if auto == "nvidia" {
					want = 7 - place
				}
				r := n.job(wrapperPID, fmt.Sprint(place))
				switch {
				case want == third:
					if r.Verdict != slurm.CannotResolve || len(r.Missing) != 1 || r.Missing[0].UUID != n.card(want) || r.Missing[0].Minor != gpu.Some(7-want) {
						t.Errorf("the lost card: %+v", r)
					}
				case r.Verdict != slurm.Resolved || r.Rule != slurm.ByRemembered || r.GPUs[0].UUID != n.card(want):
					t.Errorf("place %d: %+v, want card %d", place, r, want)
				}
			}
		})
	}
	// Without the list nobody can tell.
	n := autoNode(t, "nvml")
	n.lose(3)
	if r := n.job(wrapperPID, "5"); r.Verdict != slurm.CannotResolve {
		t.Errorf("without a list: %+v", r)
	}
}

// The job of the lost card itself is told that it is this one, as long as the
// kernel shows it.
func TestLostCardIsStillKnownToTheKernel(t *testing.T) {
	n := autoNode(t, "nvml")
	n.learn(wrapperPID)
	proc := n.reading.Node.Presence.Proc
	n.lose(3)
	n.reading.Node.Presence.Proc = proc
	r := n.job(wrapperPID, "3,5")
	if r.Verdict != slurm.Resolved || len(r.GPUs) != 2 || r.GPUs[0].UUID != n.card(3) || r.GPUs[0].Index.IsSet() || r.GPUs[1].UUID != n.card(5) {
		t.Errorf("%+v", r)
	}
	if want := "by remembered: the list of the slurmd that started at "; !strings.HasPrefix(r.Reason, want) || !strings.Contains(r.Reason, "(computed at 2026-07-01T12:00:00Z)") {
		t.Errorf("reason %q", r.Reason)
	}
	// And with the driver gone altogether.
	n.reading = driver.Reading{Answer: gpu.AnswerWhole}
	r = n.job(wrapperPID, "3")
	if r.Verdict != slurm.CannotResolve || len(r.Missing) != 1 || r.Missing[0].UUID != n.card(3) {
		t.Errorf("no driver: %+v", r)
	}
}

// Whatever voids the list voids it: then a node with a card less cannot resolve.
func TestDevicesKey(t *testing.T) {
	remembered := func(n *testNode) string { return filepath.Join(n.cfg.Paths.Run, "devices.json") }
	for _, tt := range []struct {
		name   string
		change func(n *testNode)
		below  int
		holds  bool
	}{
		{"nothing changes", func(*testNode) {}, wrapperPID, true},
		{"below slurmstepd, slurmd lives", func(*testNode) {}, stepdPID, true},
		{"a person, slurmd lives", func(*testNode) {}, 1, true},
		{"a person, by the pid file", func(n *testNode) {
			n.write(filepath.Join(n.cfg.Paths.Root, "slurmd.pid"), fmt.Sprintln(slurmdPID))
		}, 1, true},
		{"gres.conf says the same in other words", func(n *testNode) { n.gres("# here\nAutoDetect=nvml\nNodeName=n2 Name=gpu File=/dev/nvidia0\n") }, wrapperPID, true},
		{"slurm.conf cannot be read", func(n *testNode) { _ = os.Remove(n.cfg.Slurm.Conf) }, wrapperPID, true},
		{"slurmd started anew", func(n *testNode) {
			n.startSlurmd(4243, startTicks+900)
			n.process(wrapperPID, "prolog.sh", 4243, startTicks+1000)
		}, wrapperPID, false},
		{"the number of slurmd was used again", func(n *testNode) { n.startSlurmd(slurmdPID, startTicks+900) }, wrapperPID, false},
		{"below slurmstepd, slurmd is gone", func(n *testNode) { _ = os.RemoveAll(filepath.Join(n.cfg.Paths.Root, "proc/4242")) }, stepdPID, false},
		{"below slurmstepd, its number is another's", func(n *testNode) { n.process(slurmdPID, "bash", 1, startTicks) }, stepdPID, false},
		{"a person, another slurmd by the pid file", func(n *testNode) {
			n.startSlurmd(4243, startTicks+900)
			n.write(filepath.Join(n.cfg.Paths.Root, "slurmd.pid"), "4243\n")
		}, 1, false},
		{"gres.conf", func(n *testNode) { n.gres("AutoDetect=nvml\nNodeName=n1 Name=gpu Type=a100\n") }, wrapperPID, false},
		{"AutoDetect", func(n *testNode) { n.gres("AutoDetect=nvidia\n") }, wrapperPID, false},
		{"Gres=", func(n *testNode) {
			n.write(n.cfg.Slurm.Conf, "NodeName=n1 Gres=gpu:a100:8\n")
		}, wrapperPID, false},
		{"the driver was loaded anew", func(n *testNode) { n.reading.Node.Presence.DriverLoad = "8" }, wrapperPID, false},
		{"another boot", func(n *testNode) { n.boot("99999999-2222-3333-4444-555555555555") }, wrapperPID, false},
		{"the file is gone", func(n *testNode) { _ = os.Remove(remembered(n)) }, wrapperPID, false},
		{"garbage", func(n *testNode) { n.write(remembered(n), "{\"schema\": \"gpuhooks.dev") }, wrapperPID, false},
		{"another version's", func(n *testNode) { n.write(remembered(n), `{"schema": "gpuhooks.devices/9"}`) }, wrapperPID, false},
		{"a card twice", func(n *testNode) {
			b, err := os.ReadFile(remembered(n))
			if err != nil {
				n.t.Fatal(err)
			}
			n.write(remembered(n), strings.ReplaceAll(string(b), n.card(4), n.card(5)))
		}, wrapperPID, false},
		{"a card under another number", func(n *testNode) { n.reading.Node.GPUs[5].Minor = gpu.Some(9) }, wrapperPID, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := autoNode(t, "nvml")
			n.learn(wrapperPID)
			tt.change(n)
			n.lose(3)
			r := n.job(tt.below, "5")
			if holds := r.Verdict == slurm.Resolved && r.GPUs[0].UUID == n.card(5); holds != tt.holds || !holds && r.Verdict != slurm.CannotResolve {
				t.Errorf("%+v", r)
			}
		})
	}
}
