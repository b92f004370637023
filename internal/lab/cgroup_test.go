//go:build e2e

package lab

import (
	"strings"
	"testing"
)

// With cgroups a process on a GPU can be told to belong to a job or to none: one
// of none, seen by two hooks three seconds apart, is left over. A job's own
// processes never are.
func TestLeftOverProcess(t *testing.T) {
	if !CanCgroups() {
		t.Skip("this machine has no freezer of cgroup version 1 for root to use")
	}
	l := startLab(t, Options{Nodes: 1, Cgroups: true})
	n := l.Nodes[0]
	left := n.Sim.Load("--gpus", "0,1", "--sm", "0.1", "--for", "60s")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { left.Process.Kill(); left.Wait() })

	// Jobs on all GPUs: the first one's prolog may share the look of the boot
	// gate, its epilog sees the stranger on 0 and 1, the second one's epilog sees
	// it again.
	first, err := l.Submit(t.Context(), l.Tool()+" load --gpus 2,3 --sm 0.1 --for 5s", "--gres=gpu:8")
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.Submit(t.Context(), "sleep 4", "--gres=gpu:8")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int{first, second} {
		if _, err := l.WaitJob(t.Context(), id, patience, "COMPLETED"); err != nil {
			t.Fatalf("%v\n%s\n%s", err, n.HookLog(), l.Log(n))
		}
	}
	var warned []string
	for line := range strings.Lines(n.HookLog()) {
		if strings.Contains(line, "left-over-processes: warn") {
			warned = append(warned, line)
		}
	}
	if len(warned) == 0 {
		t.Fatalf("no warning:\n%s", n.HookLog())
	}
	for _, line := range warned {
		if !strings.Contains(line, n.UUIDs[0]) && !strings.Contains(line, n.UUIDs[1]) {
			t.Errorf("a process that belongs to a job: %s", line)
		}
	}
	s, err := l.NodeState(t.Context(), n.Name)
	if err != nil || s.Drained() {
		t.Errorf("%s: %s, %v", s.State, s.Reason, err)
	}
}
