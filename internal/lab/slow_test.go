//go:build e2e && full

package lab

import (
	"sync"
	"testing"
	"time"
)

// A driver that stops answering, for all cards or for one, is no failure until two
// probes, 30 s apart, have found it silent. Until then jobs start, those without
// GPUs as fast as ever. When it answers again the node comes back by itself.
func TestSlowDriver(t *testing.T) {
	c := checked{startLab(t, Options{Nodes: 2, HealthCheck: 10, NodeConfig: checkedConfig})}
	all, one := c.Nodes[0], c.Nodes[1]
	const pci = "00000000:DF:00.0" // of card 7, whose index only the driver knows
	var both sync.WaitGroup
	both.Go(func() {
		t.Run("AllCards", func(t *testing.T) { c.silent(t, all, "call.*=hang", "[HC] NOANSWER ") })
	})
	both.Go(func() {
		t.Run("OneCard", func(t *testing.T) { c.silent(t, one, "gpu.7.call.*=hang", "[HC] NOANSWER gpu="+pci+" "+one.UUIDs[7]) })
	})
	both.Wait()
}

func (c checked) silent(t *testing.T, n *Node, fault, reason string) {
	cure := change(t, n.Sim, fault)
	began := time.Now()
	var ids []int
	for _, gres := range []string{"--gres=gpu:7", "--gres=gpu:1", "--gres=none"} {
		id, err := c.Submit(t.Context(), "sleep 1", gres, "-w", n.Name)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		if j, err := c.WaitJob(t.Context(), id, patience, "COMPLETED"); err != nil || j.Restarts != 0 {
			t.Errorf("job %d: %d restarts, %v\n%s", id, j.Restarts, err, n.HookLog())
		}
	}
	c.drained(t, n, reason)
	if d := time.Since(began); d < 30*time.Second {
		t.Errorf("drained %s after the driver fell silent\n%s", d, n.HookLog())
	}
	cure()
	c.idle(t, n)
	c.runs(t, n)
}
