package baseline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuhooks/internal/gpu"
)

// Named is one node as it was read.
type Named struct {
	Name string
	Node gpu.Node
}

// Outlier is a node, or one of its cards, that is not as most are. Where too few
// are alike, Most is "" and nothing is expected.
type Outlier struct {
	Node string        `json:"node"`
	GPU  *gpu.Identity `json:"gpu,omitempty"`
	Kind string        `json:"kind,omitempty"` // name of the card
	Key  string        `json:"key"`
	Have string        `json:"have"`
	Most string        `json:"most"`
}

// String is one line for people.
func (o Outlier) String() string {
	who := o.Node
	if o.GPU != nil {
		who += fmt.Sprintf(" gpu %d %s (%s)", o.GPU.Index, o.GPU.UUID, o.Kind)
	}
	if o.Most == "" {
		return fmt.Sprintf("%s: %s is %s, and nothing is expected: they are not alike", who, o.Key, o.Have)
	}
	return fmt.Sprintf("%s: %s is %s, most have %s", who, o.Key, o.Have, o.Most)
}

// Majority is the value that more than half have, and by how many.
func Majority(values []string) (value string, n int, ok bool) {
	count := map[string]int{}
	for _, v := range values {
		if count[v]++; count[v] > n {
			value, n = v, count[v]
		}
	}
	return value, n, 2*n > len(values)
}

// Learn makes a baseline of what most of the nodes have, and says who differs in
// what. It is for nodes that a person knows to be good, and never runs unasked.
func Learn(nodes []Named) (Baseline, []Outlier) {
	l := learner{b: Baseline{Schema: Schema, Cards: map[string]Card{}, Ports: map[string]Port{}}, nodes: nodes}
	l.node("driver", func(n *gpu.Node) (string, bool) { return n.Driver.Version.Get() },
		func(n *gpu.Node) { l.b.Node.Driver = n.Driver.Version.Or("") })
	l.node("pci", func(n *gpu.Node) (string, bool) { return strings.Join(addresses(n), " "), len(n.GPUs) > 0 },
		func(n *gpu.Node) { l.b.Node.PCI = addresses(n) })
	l.node("conf_compute", func(n *gpu.Node) (string, bool) {
		return switched(n.Driver.ConfCompute.Or(gpu.ConfCompute{}).Enabled), true
	},
		func(n *gpu.Node) {
			if c, ok := n.Driver.ConfCompute.Get(); ok {
				l.b.Node.ConfCompute = switched(c.Enabled)
			}
		})
	l.host("daemons", func(h *gpu.Host) string { return strings.Join(slices.Sorted(slices.Values(h.Daemons)), " ") },
		func(h *gpu.Host) { l.b.Node.Daemons = slices.Sorted(slices.Values(h.Daemons)) })
	l.host("gpudirect", reach, func(h *gpu.Host) {
		if r := reach(h); r != "none" {
			l.b.Node.GPUDirect = r
		}
	})
	l.host("clock_sync", func(h *gpu.Host) string { return switched(h.Clock.Or(gpu.Clock{}).Synchronised) },
		func(h *gpu.Host) { l.b.Node.ClockSync = h.Clock.Or(gpu.Clock{}).Synchronised })
	l.ports()
	for _, name := range l.kinds() {
		l.cards(name)
	}
	return l.b, l.out
}

// learner collects the baseline and those who differ from it.
type learner struct {
	nodes []Named
	b     Baseline
	out   []Outlier
}

// have is one node's or card's value.
type have struct {
	node  string
	gpu   *gpu.GPU
	value string
}

// settle finds the majority, or what all have; take is called with one who has
// it. Everybody else is an outlier.
func (l *learner) settle(key string, byAll bool, all []have, take func(i int)) {
	var values []string
	for _, h := range all {
		values = append(values, h.value)
	}
	most, n, ok := Majority(values)
	ok = ok && (n == len(values) || !byAll)
	if len(all) == 0 {
		return
	}
	if ok {
		take(slices.Index(values, most))
	} else {
		most = ""
	}
	for _, h := range all {
		if h.value == most && ok {
			continue
		}
		o := Outlier{Node: h.node, Key: key, Have: h.value, Most: most}
		if h.gpu != nil {
			o.GPU, o.Kind = &h.gpu.Identity, h.gpu.Name
		}
		l.out = append(l.out, o)
	}
}

// node settles what is a node's own.
func (l *learner) node(key string, value func(*gpu.Node) (string, bool), take func(*gpu.Node)) {
	var all []have
	var from []*gpu.Node
	for i := range l.nodes {
		if v, ok := value(&l.nodes[i].Node); ok {
			all, from = append(all, have{node: l.nodes[i].Name, value: v}), append(from, &l.nodes[i].Node)
		}
	}
	l.settle(key, false, all, func(i int) { take(from[i]) })
}

// host settles what surrounds the cards, where it was read.
func (l *learner) host(key string, value func(*gpu.Host) string, take func(*gpu.Host)) {
	l.node(key, func(n *gpu.Node) (string, bool) {
		if n.Host == nil {
			return "", false
		}
		v := value(n.Host)
		return v, v != ""
	}, func(n *gpu.Node) { take(n.Host) })
}

// ports settles the RDMA ports one by one; those that most nodes have not are not
// expected.
func (l *learner) ports() {
	names := map[string]bool{}
	for _, n := range l.nodes {
		if n.Node.Host != nil {
			for p := range ports(n.Node.Host) {
				names[p] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		l.host(name, func(h *gpu.Host) string { return ports(h)[name].String() }, func(h *gpu.Host) {
			if p, ok := ports(h)[name]; ok {
				l.b.Ports[name] = p
			}
		})
	}
}

// kinds are the names of all cards.
func (l *learner) kinds() []string {
	all := map[string]bool{}
	for _, n := range l.nodes {
		for name := range kinds(&n.Node) {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// cards settles everything about the cards of one name. Nodes may have another
// number of them, or none: that is an outlier of its own.
func (l *learner) cards(name string) {
	var c Card
	l.node("count of "+name, func(n *gpu.Node) (string, bool) { return fmt.Sprint(kinds(n)[name]), true },
		func(n *gpu.Node) { c.Count = kinds(n)[name] })
	for _, item := range items {
		var all []have
		for i := range l.nodes {
			n := &l.nodes[i]
			for j := range n.Node.GPUs {
				g := &n.Node.GPUs[j]
				if v, ok := item.Have(g); ok && g.Name == name {
					all = append(all, have{n.Name, g, v})
				}
			}
		}
		l.settle(item.Key, item.byAll, all, func(i int) { item.learn(&c, all[i].gpu) })
	}
	if c.Count > 0 { // a kind that most nodes have not is not expected
		l.b.Cards[name] = c
	}
}
