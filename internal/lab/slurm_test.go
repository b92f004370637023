//go:build e2e

package lab

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Slurm alone, without the hooks: the cluster, its GPUs and the load tool.
func TestSlurmAlone(t *testing.T) {
	l, err := Start(t.Context(), Options{Nodes: 1, NoHooks: true, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
		if left := l.related(); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	})
	id, err := l.Submit(t.Context(), l.Tool()+" load --sm 0.5 --for 2s; echo $CUDA_VISIBLE_DEVICES", "--gres=gpu:3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.WaitJob(t.Context(), id, 20*time.Second, "RUNNING"); err != nil {
		t.Fatal(err)
	}
	gpus, err := l.JobGPUs(t.Context(), id)
	if err != nil || !slices.Equal(gpus, []int{0, 1, 2}) {
		t.Errorf("GPUs %v, %v", gpus, err)
	}
	if _, err := l.WaitJob(t.Context(), id, 20*time.Second, "COMPLETED"); err != nil {
		t.Errorf("%v: %s", err, ReadFile(l.OutputFile(id)))
	}
	if out := ReadFile(l.OutputFile(id)); !strings.HasSuffix(out, "\n0,1,2\n") {
		t.Errorf("the job said %q", out)
	}
}
