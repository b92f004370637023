//go:build e2e && full

package lab

import (
	"testing"
	"time"
)

// A driver that stops answering is no failure until two probes, 30 s apart, have
// found it silent. Until then jobs start, those without GPUs as fast as ever.
func TestSlowDriver(t *testing.T) {
	c := checked{startLab(t, Options{Nodes: 1, HealthCheck: 10, NodeConfig: checkedConfig})}
	n := c.Nodes[0]
	cure := change(t, n.Sim, "call.*=hang")
	began := time.Now()
	gpu, err := c.Submit(t.Context(), "sleep 1", "--gres=gpu:1", "-w", n.Name)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := c.Submit(t.Context(), "sleep 1", "-w", n.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int{gpu, plain} {
		if j, err := c.WaitJob(t.Context(), id, patience, "COMPLETED"); err != nil || j.Restarts != 0 {
			t.Errorf("job %d: %d restarts, %v\n%s", id, j.Restarts, err, n.HookLog())
		}
	}
	c.drained(t, n, "[HC] NOANSWER ")
	if d := time.Since(began); d < 30*time.Second {
		t.Errorf("drained %s after the driver fell silent\n%s", d, n.HookLog())
	}
	cure()
	c.idle(t, n)
	c.runs(t, n)
}
