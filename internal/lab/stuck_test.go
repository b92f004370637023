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

	"gpuhooks/internal/lab/stage"
)

// answerLimit is how long a prolog may take: 7 s, and what a busy machine adds to
// starting it and to asking Slurm for the result.
const answerLimit = 10 * time.Second

// A probe that sits in the driver (state D) and cannot be killed is proof: the node
// is drained within the prolog's time and the job runs elsewhere. slurmd goes on
// with the jobs that it has, those on the other cards too.
func TestStuckInTheDriver(t *testing.T) {
	n, other := shared.Node("n2"), shared.Node("n1")
	group := stage.Freezer(t)
	if left := shared.samplers(10 * time.Second); len(left) > 0 {
		t.Fatalf("a sampler of another test is at work: %v", left)
	}
	onCards := submit(t, "echo here; sleep 15", "--gres=gpu:2", "-w", n.Name)
	without := submit(t, "echo here; sleep 15", "-w", n.Name)
	for _, id := range []int{onCards, without} {
		started(t, id)
	}
	// From now on whoever asks the driver sleeps in the kernel: a frozen group of the
	// first version of cgroups is as deaf to KILL as a driver call that never returns.
	probe := filepath.Join(n.Dir, "probe.sh")
	script := fmt.Sprintf("#!/bin/sh\necho 0 >%s/cgroup.procs\nexec %s \"$@\"\n", group, filepath.Join(shared.bin(), "gpu-probe"))
	if err := os.WriteFile(probe, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(ReadFile(n.Config()), filepath.Join(shared.bin(), "gpu-probe"), probe, 1)
	if err := os.WriteFile(n.Config(), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.SetMode(n, "enforce"); err != nil {
			t.Error(err)
		}
		if err := shared.Resume(context.Background(), n.Name); err != nil {
			t.Error(err)
		}
	})
	forget(t, n)

	// Jobs of one card go to the node with the least weight, which is the stuck one.
	id := submit(t, "sleep 1", "--gres=gpu:1")
	if _, err := shared.WaitJobUntil(t.Context(), id, patience, "a prolog", func(j Job) bool {
		return j.State == "RUNNING" || j.Restarts > 0
	}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := poll(t.Context(), patience, func() (bool, error) {
		s, err := shared.NodeState(t.Context(), n.Name)
		return s.Drained(), err
	}); err != nil {
		t.Fatalf("not drained: %v\n%s", err, logs(id))
	}
	if d := time.Since(began); d > answerLimit {
		t.Errorf("drained %s after the prolog's start", d)
	}
	if j := wait(t, id, "COMPLETED"); j.Restarts != 1 || j.Node != other.Name {
		t.Errorf("%d restarts, on %s: want one, and the end on %s\n%s", j.Restarts, j.Node, other.Name, logs(id))
	}
	s, err := shared.NodeState(t.Context(), n.Name)
	if err != nil || !s.Drained() || !strings.HasPrefix(s.Reason, "[HC] NOANSWER") {
		t.Errorf("%s %q, %v\n%s", s.State, s.Reason, err, logs(id))
	}
	// No second probe is started while the first one is there, and no hook waits.
	began = time.Now()
	if status := hook(t, n, "prolog.sh", 900100, 0); status != 1 {
		t.Errorf("status %d, want the refusal\n%s", status, logs(900100))
	}
	if d := time.Since(began); d > answerLimit {
		t.Errorf("the second prolog answered after %s", d)
	}
	procs := strings.Fields(ReadFile(filepath.Join(group, "cgroup.procs")))
	if len(procs) != 1 {
		t.Errorf("processes %v are stuck, want one", procs)
	}
	for _, id := range []int{onCards, without} {
		if j := wait(t, id, "COMPLETED"); j.Restarts != 0 || j.ExitCode != "0:0" {
			t.Errorf("job %d: %+v\n%s", id, j, logs(id))
		}
	}
	if r := recordOf(t, onCards); r.Quality.NoStart || !r.Quality.NoEnd {
		t.Errorf("quality %+v of a run whose end nobody could read", r.Quality)
	}
}

// started waits until a job's prologs have ended and its script runs: Slurm calls a
// job RUNNING before.
func started(t *testing.T, id int) {
	t.Helper()
	if err := poll(t.Context(), patience, func() (bool, error) {
		return ReadFile(shared.OutputFile(id)) != "", nil
	}); err != nil {
		t.Fatalf("job %d did not start: %v\n%s", id, err, logs(id))
	}
}

// forget drops what the last hook has read, as if the 5 s were over for which
// prologs share it.
func forget(t *testing.T, n *Node) {
	t.Helper()
	if err := os.Remove(filepath.Join(n.Run(), "reading.json")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// Two health checks at once: the second one leaves, and the driver is asked once.
func TestHealthChecksDoNotOverlap(t *testing.T) {
	n := shared.Node("n1")
	if left := shared.samplers(10 * time.Second); len(left) > 0 {
		t.Fatalf("a sampler of another test is at work: %v", left)
	}
	set(t, n, "count_calls=true", "call.nvmlInit_v2=delay=2500ms")
	if err := n.Sim.ResetCalls(); err != nil {
		t.Fatal(err)
	}
	first := make(chan int)
	go func() {
		status, err := shared.Hook(t.Context(), n, "healthcheck.sh")
		if err != nil {
			t.Error(err)
		}
		first <- status
	}()
	var inits int
	if err := poll(t.Context(), patience, func() (bool, error) {
		calls, err := n.Sim.Calls()
		inits = calls["nvmlInit_v2"]
		return inits > 0, err
	}); err != nil {
		t.Fatal(err)
	}
	if status, err := shared.Hook(t.Context(), n, "healthcheck.sh"); err != nil || status != 0 {
		t.Errorf("the second: status %d, %v", status, err)
	}
	select {
	case <-first:
		t.Error("the second health check waited for the first")
	default:
		if status := <-first; status != 0 {
			t.Errorf("the first: status %d", status)
		}
	}
	if calls, err := n.Sim.Calls(); err != nil || calls["nvmlInit_v2"] != 1 {
		t.Errorf("nvmlInit %d times, %v", calls["nvmlInit_v2"], err)
	}
	if log := n.HookLog(); !strings.Contains(log, "another health check is at work") {
		t.Errorf("the second says nothing:\n%s", log)
	}
}
