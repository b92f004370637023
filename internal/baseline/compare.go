package baseline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuhooks/internal/gpu"
)

// Difference is one thing in which a node, or one of its cards, is not as its
// baseline expects.
type Difference struct {
	Key   string        `json:"key"`           // driver, count, vbios, …
	GPU   *gpu.Identity `json:"gpu,omitempty"` // nil: the node
	Label string        `json:"label"`
	Want  string        `json:"want"`
	Have  string        `json:"have"` // "" when it is not known: the driver does not say
}

// String is one line for people: "power limit: 300 W instead of 700 W".
func (d Difference) String() string {
	have := d.Have
	if have == "" {
		have = "unknown"
	}
	return d.Label + ": " + have + " instead of " + d.Want
}

// Compare says in what a node is not as expected; checks see the same
// differences one by one. The node must have answered for all of its cards.
func Compare(b Baseline, n *gpu.Node) []Difference {
	out := slices.Concat(
		b.CompareDriver(n), b.CompareConfCompute(n), differ("pci", "PCI addresses", strings.Join(b.Node.PCI, " "), strings.Join(addresses(n), " ")),
		b.CompareCounts(n), b.compareHost(n.Host),
	)
	for i := range n.GPUs {
		for _, item := range items {
			if d, ok := b.CompareCard(&n.GPUs[i], item); ok && d != nil {
				out = append(out, *d)
			}
		}
	}
	return out
}

// CompareCard judges one item of a card: nil is as expected, false is not judged.
func (b Baseline) CompareCard(g *gpu.GPU, item Item) (*Difference, bool) {
	want := item.Want(b, g)
	if len(want) == 0 {
		return nil, false
	}
	have, ok := item.Have(g)
	if ok && slices.Contains(want, have) {
		return nil, true
	}
	if !ok {
		have = ""
	}
	return &Difference{Key: item.Key, GPU: &g.Identity, Label: item.Label, Want: strings.Join(want, " or "), Have: have}, true
}

// CompareDriver judges the driver's version.
func (b Baseline) CompareDriver(n *gpu.Node) []Difference {
	return differ("driver", "driver", b.Node.Driver, n.Driver.Version.Or(""))
}

// CompareConfCompute judges whether confidential computing is on.
func (b Baseline) CompareConfCompute(n *gpu.Node) []Difference {
	conf, known := n.Driver.ConfCompute.Get()
	have := switched(conf.Enabled)
	if !known && !n.Driver.Version.IsSet() { // else it is not possible there
		have = ""
	}
	return differ("conf_compute", "confidential computing", b.Node.ConfCompute, have)
}

// CompareCounts judges how many cards of which kind there are.
func (b Baseline) CompareCounts(n *gpu.Node) []Difference {
	var out []Difference
	cards := kinds(n)
	for name := range b.Cards {
		if _, ok := cards[name]; !ok {
			cards[name] = 0
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cards)) {
		c, expected := b.Cards[name]
		if len(b.Cards) > 0 && (!expected || c.Count > 0) {
			out = append(out, differ("count", "number of "+name, fmt.Sprint(c.Count), fmt.Sprint(cards[name]))...)
		}
	}
	return out
}

func differ(key, label, want, have string) []Difference {
	if want == "" || have == want {
		return nil
	}
	return []Difference{{Key: key, Label: label, Want: want, Have: have}}
}

func addresses(n *gpu.Node) []string {
	var out []string
	for _, g := range n.GPUs {
		out = append(out, g.PCI)
	}
	slices.Sort(out)
	return out
}

// kinds counts the cards by name.
func kinds(n *gpu.Node) map[string]int {
	out := map[string]int{}
	for _, g := range n.GPUs {
		out[g.Name]++
	}
	return out
}
