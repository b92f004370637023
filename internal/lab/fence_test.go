//go:build e2e

package lab

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gpuhooks/internal/record"
)

// The hooks on a cluster as most sites have it: proctrack/cgroup, task/cgroup and
// ConstrainDevices. A job sees its own cards and no others; the hooks, which are in
// no job's cgroup, see all: a healthy job is recorded whole, one that meets a lost
// card is restarted elsewhere, and the health check drains.
func TestConstrainedDevices(t *testing.T) {
	if !CanFence() {
		t.Skip("this machine has no freezer and device controller of cgroup version 1 for root to use")
	}
	l := startLab(t, Options{Nodes: 2, Cgroups: true, Fence: true})
	other, n := l.Nodes[0], l.Nodes[1] // a job that names no node goes to the last one
	say := func(id int) string {
		return n.HookLog() + other.HookLog() + l.Log(n) + ReadFile(l.OutputFile(id))
	}

	t.Run("HealthyJob", func(t *testing.T) {
		var look strings.Builder
		for i, d := range n.Devices {
			fmt.Fprintf(&look, "(: <%s) 2>&1 | sed 's/^/card %d: /'\n", d, i)
		}
		id, err := l.Submit(t.Context(), look.String()+l.Tool()+" load --sm 0.5 --for 4s", "--gres=gpu:2")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.WaitJob(t.Context(), id, patience, "COMPLETED"); err != nil {
			t.Fatalf("%v\n%s", err, say(id))
		}
		// No driver is behind the cards, so one's own cannot be opened either: but that
		// is said in other words.
		out := ReadFile(l.OutputFile(id))
		for i := range n.Devices {
			want := "Operation not permitted"
			if i < 2 {
				want = "No such device or address"
			}
			if _, line, _ := strings.Cut(out, fmt.Sprintf("card %d: ", i)); !strings.Contains(strings.SplitN(line, "\n", 2)[0], want) {
				t.Errorf("card %d: want %q in\n%s", i, want, out)
			}
		}
		r, err := l.Record(id)
		if err != nil {
			t.Fatalf("%v\n%s", err, say(id))
		}
		whole(t, r)
		if r.State.Word != record.Completed || len(r.GPUs) != 2 || r.GPUs[0].UUID != n.UUIDs[0] || r.GPUs[1].UUID != n.UUIDs[1] {
			t.Errorf("%s, GPUs %+v", r.State.Word, r.GPUs)
		}
		for _, g := range r.GPUs {
			if sm, ok := g.Get("sm_active_mean_ratio"); !ok || sm < 0.05 || sm > 0.55 {
				t.Errorf("%s: SM active %.3f, known: %v", g.UUID, sm, ok)
			}
		}
		if strings.Contains(n.HookLog(), "left-over-processes") {
			t.Errorf("the job's own processes are strangers:\n%s", n.HookLog())
		}
	})

	t.Run("LostGPU", func(t *testing.T) {
		cure := change(t, n.Sim, "gpu.3.lost=true")
		id, err := l.Submit(t.Context(), "sleep 1", "--gres=gpu:8")
		if err != nil {
			t.Fatal(err)
		}
		j, err := l.WaitJob(t.Context(), id, patience, "COMPLETED")
		if err != nil || j.Restarts != 1 || j.Node != other.Name {
			t.Fatalf("%d restarts, on %s, %v: want one, and the end on %s\n%s", j.Restarts, j.Node, err, other.Name, say(id))
		}
		s, err := l.NodeState(t.Context(), n.Name)
		if want := "[HC] LOST gpu=3 " + n.UUIDs[3]; err != nil || !s.Drained() || !strings.HasPrefix(s.Reason, want) {
			t.Errorf("%s %q, %v, want %q", s.State, s.Reason, err, want)
		}
		if r, err := l.Record(id); err != nil || r.Node != other.Name {
			t.Errorf("record of %s, %v", r.Node, err)
		}
		cure()
		if err := l.Resume(t.Context(), n.Name); err != nil {
			t.Error(err)
		}
	})

	t.Run("HealthCheck", func(t *testing.T) {
		change(t, other.Sim, "gpu.5.remap.failed=true")
		status, err := l.Hook(t.Context(), other, "healthcheck.sh")
		if err != nil || status != 1 {
			t.Errorf("status %d, %v", status, err)
		}
		s, err := l.NodeState(t.Context(), other.Name)
		if want := "[HC] REMAPFAIL gpu=5 " + other.UUIDs[5]; err != nil || !s.Drained() || !strings.HasPrefix(s.Reason, want) {
			t.Errorf("%s %q, %v, want %q\n%s", s.State, s.Reason, err, want, other.HookLog())
		}
	})

	t.Run("Doctor", func(t *testing.T) {
		out, err := l.Program(t.Context(), n, "gpu-healthcheck", "doctor")
		if err != nil || !strings.Contains(out, "0 errors") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	if left, _ := filepath.Glob(filepath.Join(cgroupRoot, "devices", "slurm_"+n.Name, "uid_*", "job_*")); len(left) > 0 {
		t.Errorf("cgroups of jobs stay: %v", left)
	}
}
