//go:build e2e && full

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A sampler goes when its last run ends, and a prolog that comes at that moment
// must not rely on it: 1 000 jobs, each started while the sampler of the one
// before it leaves, and none without samples. Slurm would need an hour for them,
// so the hooks are started as slurmd does.
func TestThousandJobsWhileSamplersLeave(t *testing.T) {
	const jobs, base = 1000, 1_000_000
	var nodes sync.WaitGroup
	for i, n := range shared.Nodes {
		nodes.Go(func() {
			for k := i; k < jobs; k += len(shared.Nodes) {
				id := base + k
				if status := hook(t, n, "prolog.sh", id, 0); status != 0 {
					t.Errorf("job %d: prolog: status %d\n%s", id, status, logs(id))
				}
				// Far shorter than a tick, long enough for a sampler to start while
				// the machine is busy: who is late then has not been started.
				time.Sleep(200 * time.Millisecond)
				if status := hook(t, n, "epilog.sh", id, 0, "SLURM_JOB_EXIT_CODE=0", "SLURM_JOB_EXIT_CODE2=0:0"); status != 0 {
					t.Errorf("job %d: epilog: status %d\n%s", id, status, logs(id))
				}
				// What the sweep of the health check does ten minutes after a job: a
				// node has tens of runs to look through, not hundreds.
				old := id - 20*len(shared.Nodes)
				if r, err := shared.Record(old); err == nil && !r.Quality.SamplerMissing {
					os.RemoveAll(filepath.Join(n.Run(), "runs", fmt.Sprintf("%d.0", old)))
				}
				// The next prolog meets the leaving sampler at another point each time.
				time.Sleep(time.Duration(k%50) * time.Millisecond)
			}
		})
	}
	nodes.Wait()
	late := 0
	for k := range jobs {
		r, err := shared.Record(base + k)
		switch {
		case err != nil:
			t.Errorf("%v", err)
		case !r.Quality.SamplerMissing:
		case sampled(shared.Nodes[k%len(shared.Nodes)], base+k):
			// The epilog waits 80 ms for the final sums, and on two busy cores that
			// is not always enough.
			late++
		default:
			t.Errorf("job %d was never sampled: quality %+v\n%s", base+k, r.Quality, logs(base+k))
		}
	}
	t.Logf("%d of %d jobs: the sampler answered after the epilog had left", late, jobs)
	if late > jobs/100 {
		t.Errorf("%d late answers, more than one in a hundred", late)
	}
}

// sampled says whether the sampler has written sums for a run.
func sampled(n *Node, job int) bool {
	_, err := os.Stat(filepath.Join(n.Run(), "runs", fmt.Sprintf("%d.0", job), "sums.json"))
	return err == nil
}
