//go:build e2e

package lab

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gpuhooks/internal/sim"
)

// checked is a cluster whose slurmd run the health check every few seconds.
type checked struct{ *Lab }

// checkedConfig makes what lasts minutes on a real node last seconds. An epilog has
// two seconds for all of Slurm's answers, which a busy machine may not give in time.
const checkedConfig = `
[drain]
brake_min = 2
undrain = true
undrain_runs = 3
undrain_hold = "5s"
[checks.recovery-action]
epilog = "warn"
`

// TestHealthCheckProgram lets slurmd run gpu-healthcheck on six nodes, each with a
// trouble of its own, and then all with the same one.
func TestHealthCheckProgram(t *testing.T) {
	c := checked{startLab(t, Options{
		Nodes: 6, HealthCheck: 3, CountCalls: true, NodeConfig: checkedConfig,
	})}
	// The first one asks Slurm whether a drain of ours stands.
	c.each(c.Nodes, func(n *Node) { c.checks(t, n, 2) })
	var alone sync.WaitGroup // each on a node of its own
	for name, test := range map[string]func(*testing.T){
		"DrainsAndUndrains": c.drainsAndUndrains, "HardwareWaitsForAPerson": c.hardwareWaits, "Healthy": c.healthy,
		"AdministratorWasFirst": c.administratorFirst, "AdministratorEditsOurReason": c.administratorEdits,
	} {
		alone.Go(func() { t.Run(name, test) }) // they wait more than they work
	}
	alone.Wait()
	t.Run("Brake", c.brake)
	t.Run("Doctor", c.doctor)
}

// checks waits until so many health checks have ended on a node: each leaves its
// verdict.
func (c checked) checks(t *testing.T, n *Node, count int) {
	t.Helper()
	var last time.Time
	err := poll(t.Context(), patience, func() (bool, error) {
		st, err := os.Stat(filepath.Join(n.Run(), "verdict.json"))
		if err == nil && !st.ModTime().Equal(last) {
			if !last.IsZero() {
				count--
			}
			last = st.ModTime()
		}
		return count <= 0, err
	})
	if err != nil {
		t.Errorf("%s: %d health checks did not come: %v\n%s", n.Name, count, err, n.HookLog())
	}
}

// each does something on several nodes at once.
func (c checked) each(nodes []*Node, do func(*Node)) {
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() { do(n) })
	}
	all.Wait()
}

// idle waits until a node is in service.
func (c checked) idle(t *testing.T, n *Node) {
	t.Helper()
	if _, err := c.WaitNode(t.Context(), n.Name, patience, "IDLE"); err != nil {
		t.Errorf("%v\n%s", err, n.HookLog())
	}
}

// state asks for a node.
func (c checked) state(t *testing.T, n *Node) NodeState {
	t.Helper()
	s, err := c.NodeState(t.Context(), n.Name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drained waits until a node is drained with a reason that begins so.
func (c checked) drained(t *testing.T, n *Node, reason string) {
	t.Helper()
	began := time.Now()
	if _, err := c.WaitNode(t.Context(), n.Name, patience, "IDLE+DRAIN"); err != nil {
		t.Fatalf("%v\n%s", err, n.HookLog())
	}
	t.Logf("%s is drained after %.1f s", n.Name, time.Since(began).Seconds())
	if s := c.state(t, n); !strings.HasPrefix(s.Reason, reason) {
		t.Errorf("%s: reason %q, want %q", n.Name, s.Reason, reason)
	}
}

// change sets keys of a node's scenario, and takes them back at the test's end.
func change(t *testing.T, n *sim.Node, settings ...string) (cure func()) {
	t.Helper()
	if err := n.Set(settings...); err != nil {
		t.Fatal(err)
	}
	cure = func() {
		var keys []string
		for _, s := range settings {
			key, _, _ := strings.Cut(s, "=")
			keys = append(keys, key)
		}
		if err := n.Unset(keys...); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(cure)
	return cure
}

// runs sends a job of one GPU to a node and waits for its end.
func (c checked) runs(t *testing.T, n *Node) {
	t.Helper()
	id, err := c.Submit(t.Context(), "sleep 1", "--gres=gpu:1", "-w", n.Name)
	if err != nil {
		t.Error(err)
		return
	}
	if j, err := c.WaitJob(t.Context(), id, patience, "COMPLETED"); err != nil || j.Restarts != 0 {
		t.Errorf("job on %s: %d restarts, %v\n%s", n.Name, j.Restarts, err, n.HookLog())
	}
}

// A fault of the driver drains the node with the exact reason and without a job.
// While nothing changes Slurm is not asked again, and once the fault is cured the
// node comes back by itself.
func (c checked) drainsAndUndrains(t *testing.T) {
	n := c.Node("n1")
	cure := change(t, n.Sim, "driver.mismatch=true")
	c.drained(t, n, "[HC] MISMATCH ")
	c.checks(t, n, 1)
	asked := n.SlurmCalls()
	c.checks(t, n, 3)
	if again := n.SlurmCalls(); len(again) != len(asked) {
		t.Errorf("asked again while nothing had changed: %q", again[len(asked):])
	}
	if s := strings.Count(n.HookLog(), "drained "+n.Name+":"); s != 1 {
		t.Errorf("drained %d times:\n%s", s, n.HookLog())
	}
	cure()
	c.idle(t, n)
	if log := n.HookLog(); !strings.Contains(log, "not undrained: 1 of 3 clean runs") || !strings.Contains(log, "undrained "+n.Name+": 3 clean runs") {
		t.Errorf("not after three clean runs:\n%s", log)
	}
	c.runs(t, n)
}

// A worn-out card keeps its node drained, however well it looks afterwards, until
// a person has acknowledged the repair.
func (c checked) hardwareWaits(t *testing.T) {
	n := c.Node("n2")
	cure := change(t, n.Sim, "gpu.5.remap.failed=true")
	c.drained(t, n, "[HC] REMAPFAIL gpu=5 "+n.UUIDs[5])
	if out, err := c.Program(t.Context(), n, "gpu-healthcheck", "ack"); err == nil || !strings.Contains(out, "still failing") {
		t.Errorf("acknowledged a card that is still bad: %v\n%s", err, out)
	}
	cure()
	c.checks(t, n, 5)
	if s := c.state(t, n); !s.Drained() {
		t.Fatalf("came back by itself: %s\n%s", s.State, n.HookLog())
	}
	out, err := c.Program(t.Context(), n, "gpu-healthcheck", "ack", "--reason", "card replaced")
	if err != nil {
		t.Errorf("ack: %v\n%s", err, out)
	}
	c.idle(t, n)
	c.runs(t, n)
}

// A node that a person has drained is his, broken or healthy.
func (c checked) administratorFirst(t *testing.T) {
	n := c.Node("n3")
	const reason = "fan noise, ada"
	c.adminDrains(t, n, reason)
	cure := change(t, n.Sim, "gpu.2.ecc.sram_threshold=true")
	c.checks(t, n, 3)
	if s := c.state(t, n); s.Reason != reason {
		t.Errorf("the reason became %q", s.Reason)
	}
	if !strings.Contains(n.HookLog(), "whose reason stays: "+reason) {
		t.Errorf("the fault was not seen:\n%s", n.HookLog())
	}
	cure()
	c.checks(t, n, 5)
	if s := c.state(t, n); !s.Drained() || s.Reason != reason {
		t.Errorf("%s %q", s.State, s.Reason)
	}
	c.resume(t, n)
}

// Once a person has written his own words over our reason the drain is his.
func (c checked) administratorEdits(t *testing.T) {
	n := c.Node("n4")
	cure := change(t, n.Sim, "gpu.1.compute_mode=2")
	c.drained(t, n, "[HC] COMPMODE gpu=1 "+n.UUIDs[1])
	const reason = "ada is on it"
	c.adminDrains(t, n, reason)
	c.checks(t, n, 3)
	cure()
	c.checks(t, n, 5)
	if s := c.state(t, n); !s.Drained() || s.Reason != reason {
		t.Errorf("%s %q, want the administrator's reason\n%s", s.State, s.Reason, n.HookLog())
	}
	c.resume(t, n)
}

func (c checked) adminDrains(t *testing.T, n *Node, reason string) {
	t.Helper()
	if _, err := c.Slurm(t.Context(), "scontrol", "update", "nodename="+n.Name, "state=drain", "reason="+reason); err != nil {
		t.Fatal(err)
	}
}

func (c checked) resume(t *testing.T, n *Node) {
	t.Helper()
	if err := c.Resume(t.Context(), n.Name); err != nil {
		t.Error(err)
	}
}

// A healthy node is looked at again and again and Slurm hears nothing of it.
func (c checked) healthy(t *testing.T) {
	n := c.Node("n6")
	asked := n.SlurmCalls()
	c.checks(t, n, 5)
	if again := n.SlurmCalls(); len(again) != len(asked) {
		t.Errorf("asked Slurm: %q", again[len(asked):])
	}
	if said := n.HookLog(); said != "" {
		t.Errorf("said: %s", said)
	}
}

// A new driver reports a recovery action that nobody knows, on every card of every
// node, and all see it at once: the brake lets two nodes go, and the others serve.
func (c checked) brake(t *testing.T) {
	for _, n := range c.Nodes {
		c.idle(t, n)
	}
	for _, n := range c.Nodes {
		change(t, n.Sim, "gpu.*.recovery=9")
	}
	// Those that drained at the same moment take it back.
	c.each(c.Nodes, func(n *Node) { c.checks(t, n, 2) })
	var away, serving []*Node
	for _, n := range c.Nodes {
		s := c.state(t, n)
		switch {
		case !s.Drained():
			serving = append(serving, n)
		case strings.HasPrefix(s.Reason, "[HC] RECOVERY9 gpu=0,1,2,3,4,5,6,7 "):
			away = append(away, n)
		default:
			t.Errorf("%s: %s %q", n.Name, s.State, s.Reason)
		}
	}
	if len(away) != 2 {
		t.Errorf("%d nodes are drained, the brake allows 2", len(away))
	}
	for _, n := range serving {
		if log := n.HookLog(); !strings.Contains(log, "the brake allows 2") {
			t.Errorf("%s does not say why it is not drained:\n%s", n.Name, log)
		}
	}
	c.each(serving, func(n *Node) { c.runs(t, n) })
	for _, n := range c.Nodes {
		if s := c.state(t, n); s.Drained() != slices.Contains(away, n) {
			t.Errorf("%s became %s: %s", n.Name, s.State, s.Reason)
		}
	}
}

// What the lab configures is what the doctor asks a site for.
func (c checked) doctor(t *testing.T) {
	out, err := c.Program(context.WithoutCancel(t.Context()), c.Nodes[0], "gpu-healthcheck", "doctor")
	t.Log(out)
	if err != nil || !strings.Contains(out, "0 errors") {
		t.Errorf("%v", err)
	}
}
