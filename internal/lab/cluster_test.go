//go:build e2e

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/record"
	"gpuhooks/internal/runs"
)

// patience is how long a test waits for what takes seconds on an idle machine.
const patience = 60 * time.Second

// shared is the cluster of this package's tests: two nodes with the hooks in
// enforce mode. The tests that break a node mend it before they end.
var shared *Lab

// fenced has the whole suite run on clusters with proctrack/cgroup, task/cgroup and
// ConstrainDevices, as most sites have them.
var fenced = os.Getenv("GPUHOOKS_LAB_FENCE") != ""

func constrained(o Options) Options {
	o.Cgroups, o.Fence = o.Cgroups || fenced, o.Fence || fenced
	return o
}

// ownNames keeps the cgroups of a second cluster apart from the shared one's.
func ownNames(o Options) Options {
	if fenced {
		o.Prefix = fmt.Sprintf("c%d-", time.Now().UnixNano()%100_000)
	}
	return o
}

func TestMain(m *testing.M) {
	code := 1
	func() {
		if fenced && !CanFence() {
			fmt.Fprintln(os.Stderr, "lab: skipped: this machine has no freezer and device controller of cgroup version 1 for root to use")
			code = 0
			return
		}
		o, err := constrained(Options{Nodes: 2, Prefix: "n", Log: os.Stderr}).FromRepo()
		if err == nil {
			shared, err = Start(context.Background(), o)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		defer shared.Stop()
		code = m.Run()
		if left := shared.samplers(5 * time.Second); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "lab: samplers stayed after the last job: %v\n", left)
			code = 1
		}
	}()
	os.Exit(code)
}

// samplers waits until no gpu-probe of the cluster runs, and returns those that do.
func (l *Lab) samplers(limit time.Duration) (left []int) {
	for end := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		left = l.probes(l.Dir)
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// probes lists the processes of gpu-probe that were told of a directory.
func (l *Lab) probes(dir string) (pids []int) {
	for _, pid := range l.related() {
		proc := fmt.Sprintf("/proc/%d/", pid)
		exe, _ := os.Readlink(proc + "exe")
		if filepath.Base(exe) == "gpu-probe" && strings.Contains(ReadFile(proc+"cmdline"), dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// startLab starts a cluster for one test alone.
func startLab(t *testing.T, o Options) *Lab {
	t.Helper()
	o.Log = t.Output()
	o, err := ownNames(constrained(o)).FromRepo()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// submit sends a job and fails the test if Slurm does not take it.
func submit(t *testing.T, script string, args ...string) int {
	t.Helper()
	id, err := shared.Submit(t.Context(), script, append([]string{"--job-name=" + t.Name()}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// wait waits for one of the states.
func wait(t *testing.T, id int, states ...string) Job {
	t.Helper()
	j, err := shared.WaitJob(t.Context(), id, patience, states...)
	if err != nil {
		t.Fatalf("%v\n%s", err, logs(id))
	}
	return j
}

// logs is what the nodes' hooks said about a job.
func logs(id int) string {
	var all []string
	for _, n := range shared.Nodes {
		for line := range strings.Lines(n.HookLog()) {
			if strings.Contains(line, fmt.Sprintf(" job=%d ", id)) {
				all = append(all, n.Name+": "+line)
			}
		}
	}
	return strings.Join(all, "")
}

// recordOf wants exactly one record of a job.
func recordOf(t *testing.T, id int) record.Record {
	t.Helper()
	r, err := shared.Record(id)
	if err != nil {
		t.Fatalf("%v\n%s", err, logs(id))
	}
	return r
}

// whole wants a record without a hole.
func whole(t *testing.T, r record.Record) {
	t.Helper()
	if q := r.Quality; q.NoStart || q.NoEnd || q.SamplerMissing || q.SamplerStale || q.EventsIncomplete || q.Unresolved != "" {
		t.Errorf("job %d: quality %+v\n%s", r.Job.ID, q, logs(int(r.Job.ID)))
	}
}

// undrained wants the node to take jobs, and mends it where it does not.
func undrained(t *testing.T, node string) {
	t.Helper()
	s, err := shared.NodeState(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	if s.Drained() {
		t.Errorf("%s is %s: %s", node, s.State, s.Reason)
		if err := shared.Resume(t.Context(), node); err != nil {
			t.Error(err)
		}
	}
}

// set changes the simulated GPUs of a node until the test ends.
func set(t *testing.T, n *Node, settings ...string) {
	t.Helper()
	if err := n.Sim.Set(settings...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var keys []string
		for _, s := range settings {
			key, _, _ := strings.Cut(s, "=")
			keys = append(keys, key)
		}
		if err := n.Sim.Unset(keys...); err != nil {
			t.Error(err)
		}
	})
}

// hook runs a node's prolog or epilog wrapper with the environment in which
// slurmd would start it for a job with one GPU.
func hook(t *testing.T, n *Node, script string, job, restart int, more ...string) (status int) {
	t.Helper()
	status, err := shared.Hook(t.Context(), n, script, append([]string{
		fmt.Sprintf("SLURM_JOB_ID=%d", job), fmt.Sprintf("SLURM_JOBID=%d", job), fmt.Sprintf("SLURM_JOB_RESTART_COUNT=%d", restart),
		"SLURM_JOB_GPUS=0", "CUDA_VISIBLE_DEVICES=0", "SLURM_JOB_USER=root", "SLURM_JOB_UID=0", "SLURM_JOB_PARTITION=gpu",
	}, more...)...)
	if err != nil {
		t.Error(err)
	}
	return status
}

// runsOf lists the directories of a job's runs on a node.
func runsOf(n *Node, job int) (names []string) {
	entries, _ := os.ReadDir(filepath.Join(n.Run(), "runs"))
	for _, e := range entries {
		if name, ok := runs.ParseName(e.Name()); ok && int(name.Job) == job {
			names = append(names, e.Name())
		}
	}
	return names
}
