package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurmctl"
)

var now = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

const reasonA = "[HC] gpu-lost gpu=3 GPU-a"

func TestReason(t *testing.T) {
	lost := Item{Code: "gpu-lost", Index: gpu.Some(3), Minor: gpu.Some(2), UUID: "GPU-a", PCI: "00000000:3B:00.0"}
	tests := []struct {
		name  string
		items []Item
		want  string
	}{
		{"none", nil, ""},
		{"a GPU", []Item{lost}, "[HC] gpu-lost gpu=3 GPU-a minor=2 pci=00000000:3B:00.0"},
		{"the node", []Item{{Code: "driver-gone", Text: "nvidia module is not loaded"}}, "[HC] driver-gone nvidia module is not loaded"},
		{"the same twice", []Item{{Code: "ecc", Index: gpu.Some(0), UUID: "GPU-a"}, {Code: "ecc", Index: gpu.Some(1), UUID: "GPU-b"}}, "[HC] ecc gpu=0 GPU-a; gpu=1 GPU-b"},
		{"two kinds", []Item{{Code: "ecc", Index: gpu.Some(0)}, {Code: "xid", Index: gpu.Some(0)}}, "[HC] ecc gpu=0; xid gpu=0"},
		{"hostile", []Item{{Code: "a b\n;", Text: "x;y \"z\"\x1b[31m$(id)"}}, "[HC] a-b-- x,y _z_?[31m_(id)"},
	}
	for _, tt := range tests {
		if got := Reason(tt.items); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if first := Reason([]Item{lost})[:20]; first != "[HC] gpu-lost gpu=3 " {
		t.Errorf("sinfo -R would show %q", first)
	}
	var many []Item
	for i := range 72 {
		it := lost
		it.Index = gpu.Some(i)
		many = append(many, it)
	}
	long := Reason(many)
	if len(long) > slurmctl.MaxReason || !strings.HasSuffix(long, " more") {
		t.Errorf("%d bytes: %s", len(long), long)
	}
	if code, ok := CodeOf(long); !ok || code != "gpu-lost" {
		t.Errorf("code %q", code)
	}
}

func TestCodeOf(t *testing.T) {
	for reason, want := range map[string]string{
		"[HC] ecc gpu=0": "ecc", "[HC] driver-gone; x": "driver-gone", "[HC] ": "", "NHC: ecc": "", "Prolog error": "", "": "", "x [HC] ecc": "",
	} {
		if got, ok := CodeOf(reason); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", reason, got, ok)
		}
	}
}

// cluster is a Slurm of n nodes named n0, n1, …
type cluster struct {
	nodes    []slurmctl.Node
	calls    []string
	fail     map[string]error // by call; Node#2 is the second
	onDrain  func(*cluster)   // what happens at the same moment
	onCount  func(*cluster)   // what has happened when the nodes are counted
	silently bool             // accepts a drain and does nothing
}

func newCluster(n int) *cluster {
	c := &cluster{fail: map[string]error{}}
	for i := range n {
		c.nodes = append(c.nodes, slurmctl.Node{Name: fmt.Sprintf("n%d", i), State: "IDLE"})
	}
	return c
}

func (c *cluster) drained(i int, reason string, at time.Time) *cluster {
	n := &c.nodes[i]
	n.Flags, n.Reason, n.ReasonUser, n.ReasonTime = []string{"DRAIN"}, reason, "root", gpu.Some(at)
	return c
}

func (c *cluster) call(name string) error {
	c.calls = append(c.calls, name)
	times := 0
	for _, k := range c.calls {
		if k == name {
			times++
		}
	}
	if err := c.fail[fmt.Sprintf("%s#%d", name, times)]; err != nil {
		return err
	}
	return c.fail[name]
}

func (c *cluster) find(name string) *slurmctl.Node {
	for i := range c.nodes {
		if c.nodes[i].Name == name {
			return &c.nodes[i]
		}
	}
	return nil
}

func (c *cluster) Node(_ context.Context, name string) (slurmctl.Node, error) {
	if err := c.call("Node"); err != nil {
		return slurmctl.Node{}, err
	}
	return *c.find(name), nil
}

func (c *cluster) Nodes(context.Context) ([]slurmctl.Node, error) {
	if c.onCount != nil {
		c.onCount(c)
	}
	return append([]slurmctl.Node(nil), c.nodes...), c.call("Nodes")
}

func (c *cluster) Drain(_ context.Context, name, reason string) error {
	if err := c.call("Drain"); err != nil || c.silently {
		return err
	}
	n := c.find(name)
	n.Flags, n.Reason, n.ReasonUser, n.ReasonTime = []string{"DRAIN"}, reason, "root", gpu.Some(now)
	if c.onDrain != nil {
		c.onDrain(c)
	}
	return nil
}

func (c *cluster) Undrain(_ context.Context, name string) error {
	if err := c.call("Undrain"); err != nil {
		return err
	}
	n := c.find(name)
	n.Flags, n.Reason = nil, ""
	return nil
}

func request() Request {
	return Request{Node: "n0", Code: "gpu-lost", Reason: reasonA, Brake: Brake{Min: 3, Fraction: 0.05, Window: time.Hour}, Now: now}
}

func TestAct(t *testing.T) {
	silent := errors.New("no answer")
	three := func() *cluster {
		return newCluster(10).drained(1, reasonA, now).drained(2, reasonA, now).drained(3, reasonA, now)
	}
	tests := []struct {
		name    string
		c       *cluster
		lost    bool // the job's own GPU
		want    Outcome
		reason  string // of the node afterwards
		calls   string
		refuses bool
	}{
		{"healthy node", newCluster(10), false, Drained, reasonA, "Node Nodes Drain Node Nodes", true},
		{"own GPU lost", newCluster(10), true, Drained, reasonA, "Node Drain Node", true},
		{"already ours", newCluster(10).drained(0, "[HC] ecc gpu=1", now), false, AlreadyOurs, "[HC] ecc gpu=1", "Node", true},
		{"foreign", newCluster(10).drained(0, "fan broken", now), false, Foreign, "fan broken", "Node", true},
		{"Slurm's own", newCluster(10).drained(0, "Prolog error", now), false, Foreign, "Prolog error", "Node", true},
		{"braked", three(), false, Braked, "", "Node Nodes", false},
		{"braked, but lost", three(), true, Drained, reasonA, "Node Drain Node", true},
		{"two are not three", newCluster(10).drained(1, reasonA, now).drained(2, reasonA, now), false, Drained, reasonA, "Node Nodes Drain Node Nodes", true},
		{"another code", newCluster(10).drained(1, "[HC] ecc", now).drained(2, "[HC] ecc", now).drained(3, "[HC] ecc", now), false, Drained, reasonA, "Node Nodes Drain Node Nodes", true},
		{"long ago", newCluster(10).drained(1, reasonA, now.Add(-2*time.Hour)).drained(2, reasonA, now.Add(-2*time.Hour)).drained(3, reasonA, now), false, Drained, reasonA, "Node Nodes Drain Node Nodes", true},
		{"a big cluster", func() *cluster { c := three(); c.nodes = append(c.nodes, newCluster(200).nodes[10:]...); return c }(), false, Drained, reasonA, "Node Nodes Drain Node Nodes", true},
		{"no answer to the first call", func() *cluster { c := newCluster(10); c.fail["Node"] = silent; return c }(), false, NoAnswer, "", "Node", true},
		{"sinfo does not answer", func() *cluster { c := newCluster(10); c.fail["Nodes"] = silent; return c }(), false, NoAnswer, "", "Node Nodes", true},
		{"update refused", func() *cluster { c := newCluster(10); c.fail["Drain"] = silent; return c }(), false, NoAnswer, "", "Node Nodes Drain", true},
		{"accepted, not done", func() *cluster { c := newCluster(10); c.silently = true; return c }(), false, NoAnswer, "", "Node Nodes Drain Node", true},
		{"cannot read back", func() *cluster { c := newCluster(10); c.fail["Node#2"] = silent; return c }(), false, Drained, reasonA, "Node Nodes Drain Node", true},
		{"cannot count again", func() *cluster { c := newCluster(10); c.fail["Nodes#2"] = silent; return c }(), false, Drained, reasonA, "Node Nodes Drain Node Nodes", true},
		{"a person at the same moment", func() *cluster {
			c := newCluster(10)
			c.onDrain = func(c *cluster) { c.drained(0, "fan broken", now) }
			return c
		}(), false, Foreign, "fan broken", "Node Nodes Drain Node", true},
		{"three others were quicker", func() *cluster {
			c := newCluster(10)
			c.onDrain = func(c *cluster) {
				for i := 1; i <= 3; i++ {
					c.drained(i, reasonA, now.Add(-time.Second))
				}
			}
			return c
		}(), false, Undone, "", "Node Nodes Drain Node Nodes Undrain", false},
		{"three others were slower", func() *cluster {
			c := newCluster(10)
			c.onDrain = func(c *cluster) {
				for i := 1; i <= 3; i++ {
					c.drained(i, reasonA, now.Add(time.Second))
				}
			}
			return c
		}(), false, Drained, reasonA, "Node Nodes Drain Node Nodes", true},
		{"somebody's note stays", func() *cluster { c := newCluster(10); c.nodes[0].Reason = "ask Ada"; return c }(), false, Drained, reasonA + "; was: ask Ada", "Node Nodes Drain Node", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := request()
			q.OwnLost = tt.lost
			r := Act(context.Background(), tt.c, q)
			if r.Outcome != tt.want || r.Refuses() != tt.refuses || len(r.Texts) == 0 {
				t.Errorf("%s (refuses %v): %q", r.Outcome, r.Refuses(), r.Texts)
			}
			if got := tt.c.nodes[0].Reason; got != tt.reason {
				t.Errorf("reason %q, want %q", got, tt.reason)
			}
			if got := strings.Join(tt.c.calls, " "); got != tt.calls {
				t.Errorf("calls %q, want %q", got, tt.calls)
			}
		})
	}
}

// All of 6 nodes drain at one moment: three stay, three come back, and every
// node comes to the same view.
func TestBrakeAgreesAmongNodes(t *testing.T) {
	c := newCluster(10)
	for i := range 6 {
		c.drained(i, reasonA, now)
	}
	stay := 0
	for i := range 6 {
		if over, _, _ := request().Brake.exceeded(c.nodes, fmt.Sprintf("n%d", i), "gpu-lost", now); !over {
			stay++
		}
	}
	if stay != 3 {
		t.Errorf("%d stay drained, want 3", stay)
	}
}

func TestBrakeLimit(t *testing.T) {
	b := Brake{Min: 3, Fraction: 0.05}
	for nodes, want := range map[int]int{0: 3, 10: 3, 79: 3, 80: 4, 1000: 50} {
		if got := b.Limit(nodes); got != want {
			t.Errorf("%d nodes: %d, want %d", nodes, got, want)
		}
	}
}

func TestActEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := newCluster(3)
	q := request()
	q.Delay = time.Hour
	if r := Act(ctx, c, q); r.Outcome != NoAnswer || len(c.calls) != 0 {
		t.Errorf("%+v, calls %v", r, c.calls)
	}
}

func TestActReasonIsOurs(t *testing.T) {
	c := newCluster(3)
	q := request()
	q.Reason = "NHC: undrain me"
	Act(context.Background(), c, q)
	if got := c.nodes[0].Reason; got != "[HC] gpu-lost NHC: undrain me" {
		t.Errorf("reason %q", got)
	}
}

func TestMayUndrain(t *testing.T) {
	rules := Rules{Enabled: true, CleanRuns: 3, Hold: time.Hour}
	node := slurmctl.Node{Name: "n0", State: "IDLE", Flags: []string{"DRAIN"}, Reason: reasonA}
	streak := Streak{Reason: reasonA, Class: "driver", DrainedAt: now.Add(-2 * time.Hour), Clean: 3}
	tests := []struct {
		name   string
		change func(*Rules, *slurmctl.Node, *Streak)
		want   bool
	}{
		{"all is well", func(*Rules, *slurmctl.Node, *Streak) {}, true},
		{"not enabled", func(r *Rules, _ *slurmctl.Node, _ *Streak) { r.Enabled = false }, false},
		{"not drained", func(_ *Rules, n *slurmctl.Node, _ *Streak) { n.Flags = nil }, false},
		{"not by us", func(_ *Rules, _ *slurmctl.Node, s *Streak) { s.Reason = "" }, false},
		{"changed by a person", func(_ *Rules, n *slurmctl.Node, _ *Streak) { n.Reason += ", leave it" }, false},
		{"hardware", func(_ *Rules, _ *slurmctl.Node, s *Streak) { s.Class = "hardware" }, false},
		{"class unknown", func(_ *Rules, _ *slurmctl.Node, s *Streak) { s.Class = "" }, false},
		{"too few runs", func(_ *Rules, _ *slurmctl.Node, s *Streak) { s.Clean = 2 }, false},
		{"too early", func(_ *Rules, _ *slurmctl.Node, s *Streak) { s.DrainedAt = now.Add(-time.Minute) }, false},
		{"no run asked for is one", func(r *Rules, _ *slurmctl.Node, s *Streak) { r.CleanRuns, s.Clean = 0, 0 }, false},
	}
	for _, tt := range tests {
		r, n, s := rules, node, streak
		tt.change(&r, &n, &s)
		if got, why := MayUndrain(r, n, s, now); got != tt.want || why == "" {
			t.Errorf("%s: %v, %q", tt.name, got, why)
		}
	}
}

func TestUndrain(t *testing.T) {
	c := newCluster(3).drained(0, reasonA, now).drained(1, "fan broken", now)
	if err := Undrain(context.Background(), c, "n1", reasonA); err == nil {
		t.Error("undrained over a foreign reason")
	}
	if err := Undrain(context.Background(), c, "n1", "fan broken"); err == nil {
		t.Error("undrained a foreign reason")
	}
	if err := Undrain(context.Background(), c, "n0", reasonA); err != nil || c.nodes[0].Drained() {
		t.Errorf("%v", err)
	}
}

// A node that counted when we did and drains a little later, in the same second, may
// come before us in the order on which all agree.
func TestActWaitsForThoseWhoCountedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 200 * time.Millisecond
		c := newCluster(10).drained(1, reasonA, now).drained(2, reasonA, now)
		began := time.Now()
		c.onCount = func(c *cluster) {
			if time.Since(began) > late {
				c.drained(3, reasonA, now)
			}
		}
		q := request()
		q.Node, q.Settle = "n9", 2*late
		if r := Act(t.Context(), c, q); r.Outcome != Undone || c.find("n9").Drained() {
			t.Errorf("%s: %q", r.Outcome, r.Texts)
		}
	})
}

func TestNames(t *testing.T) {
	for reason, want := range map[string]bool{
		"[HC] LOST gpu=3 GPU-1; XID95 gpu=2": true,
		"[HC] XID95 gpu=2 GPU-1":             true,
		"[HC] ECC gpu=2 GPU-XID95":           false,
		"XID95 gpu=2":                        false,
		"":                                   false,
	} {
		if got := Names(reason, "XID95"); got != want {
			t.Errorf("%q: %t", reason, got)
		}
	}
}
