//go:build e2e && full

package lab

import (
	"fmt"
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
				time.Sleep(400 * time.Millisecond)
				if status := hook(t, n, "epilog.sh", id, 0, "SLURM_JOB_EXIT_CODE=0", "SLURM_JOB_EXIT_CODE2=0:0"); status != 0 {
					t.Errorf("job %d: epilog: status %d\n%s", id, status, logs(id))
				}
				// The next prolog meets the leaving sampler at another point each time.
				time.Sleep(time.Duration(k%50) * time.Millisecond)
			}
		})
	}
	nodes.Wait()
	unsampled := 0
	for k := range jobs {
		r, err := shared.Record(base + k)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if r.Quality.SamplerMissing {
			unsampled++
			t.Logf("job %d: quality %+v\n%s", base+k, r.Quality, logs(base+k))
		}
	}
	if unsampled > 0 {
		t.Error(fmt.Sprint(unsampled) + " jobs without samples")
	}
}
