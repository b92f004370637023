//go:build e2e

package lab

import (
	"syscall"
	"testing"
	"time"
)

// samplerOf is the one gpu-probe that samples on a node while a job runs.
func samplerOf(t *testing.T, n *Node) int {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if pids := shared.probes(n.Dir); len(pids) == 1 {
			return pids[0]
		}
	}
	t.Fatalf("samplers of %s: %v, want one", n.Name, shared.probes(n.Dir))
	return 0
}

// A sampler that is killed or hangs costs samples of the jobs that ran: never
// their counters or records, never the node, and nothing of the next job.
func TestSamplerIsLost(t *testing.T) {
	n := shared.Node("n1")
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		seen   time.Duration // until a prolog can know it
	}{
		{"killed", syscall.SIGKILL, 0},
		{"hangs", syscall.SIGSTOP, stale},
	} {
		t.Run(c.name, func(t *testing.T) {
			if left := shared.samplers(10 * time.Second); len(left) > 0 {
				t.Fatalf("a sampler of another test is at work: %v", left)
			}
			id := submit(t, load("--sm 0.5 --for 6s"), "--gres=gpu:1", "-w", "n1")
			wait(t, id, "RUNNING")
			time.Sleep(3 * time.Second)
			lost := samplerOf(t, n)
			if err := syscall.Kill(lost, c.signal); err != nil {
				t.Fatal(err)
			}
			wait(t, id, "COMPLETED")
			r := recordOf(t, id)
			if q := r.Quality; q.NoStart || q.NoEnd || !q.SamplerStale && !q.SamplerMissing {
				t.Errorf("quality %+v, want the lost sampler and nothing else\n%s", q, logs(id))
			}
			if e, known := r.GPUs[0].Get("energy_joules"); !known || e < 500 {
				t.Errorf("energy %.0f J, known: %v", e, known)
			}
			undrained(t, "n1")

			time.Sleep(c.seen)
			next := submit(t, load("--sm 0.5 --for 3s"), "--gres=gpu:1", "-w", "n1")
			wait(t, next, "COMPLETED")
			whole(t, recordOf(t, next))
			if startTime(lost) != "" {
				t.Errorf("process %d is still there", lost)
			}
			undrained(t, "n1")
		})
	}
}

// stale is when a heartbeat is too old: three of the default ticks of 5 s.
const stale = 16 * time.Second
