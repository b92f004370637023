//go:build e2e && full

package lab

import "testing"

// Nodes that find the same fault at the same moment do not see one another when they
// count. Whatever their order, the brake keeps all but two in service.
func TestBrakeHoldsAtOnce(t *testing.T) {
	c := checked{startLab(t, Options{Nodes: 8, NodeConfig: "\n[drain]\nbrake_min = 2\n"})}
	for round := range 10 {
		for _, n := range c.Nodes {
			if err := n.Sim.Set("gpu.*.recovery=9"); err != nil {
				t.Fatal(err)
			}
		}
		c.each(c.Nodes, func(n *Node) {
			if _, err := c.Hook(t.Context(), n, "healthcheck.sh"); err != nil {
				t.Error(err)
			}
		})
		away := 0
		for _, n := range c.Nodes {
			if c.state(t, n).Drained() {
				away++
			}
		}
		if away != 2 {
			t.Errorf("round %d: %d nodes are drained, the brake allows 2", round, away)
			for _, n := range c.Nodes {
				t.Logf("%s\n%s", n.Name, n.HookLog())
			}
		}
		for _, n := range c.Nodes {
			if err := n.Sim.Unset("gpu.*.recovery"); err != nil {
				t.Fatal(err)
			}
		}
		c.each(c.Nodes, func(n *Node) {
			if out, err := c.Program(t.Context(), n, "gpu-healthcheck", "ack"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			c.idle(t, n)
		})
	}
}
