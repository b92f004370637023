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
	out := b.CompareNode(n)
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

// CompareNode judges what is no card's: the driver, how many cards of which kind,
// confidential computing, and what surrounds them where that was read.
func (b Baseline) CompareNode(n *gpu.Node) []Difference {
	var out []Difference
	differ := func(key, label, want string, have string) {
		if want != "" && have != want {
			out = append(out, Difference{Key: key, Label: label, Want: want, Have: have})
		}
	}
	differ("driver", "driver", b.Node.Driver, n.Driver.Version.Or(""))
	conf, known := n.Driver.ConfCompute.Get()
	have := switched(conf.Enabled)
	if !known && n.Driver.Version.IsSet() {
		have = "off" // set where it is possible
	}
	differ("conf_compute", "confidential computing", b.Node.ConfCompute, have)
	differ("pci", "PCI addresses", strings.Join(b.Node.PCI, " "), strings.Join(addresses(n), " "))
	cards := kinds(n)
	for _, name := range slices.Sorted(maps.Keys(b.Cards)) {
		if want := b.Cards[name].Count; want > 0 && cards[name] != want {
			differ("count", "number of "+name, fmt.Sprint(want), fmt.Sprint(cards[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cards)) {
		if _, ok := b.Cards[name]; !ok && len(b.Cards) > 0 {
			differ("count", "number of "+name, "0", fmt.Sprint(cards[name]))
		}
	}
	if n.Host != nil {
		return append(out, b.compareHost(n.Host)...)
	}
	return out
}

// compareHost judges the daemons, GPUDirect, the clock and the RDMA ports.
func (b Baseline) compareHost(h *gpu.Host) []Difference {
	var out []Difference
	add := func(key, label, want, have string) {
		if want != have {
			out = append(out, Difference{Key: key, Label: label, Want: want, Have: have})
		}
	}
	for _, d := range b.Node.Daemons {
		if !slices.Contains(h.Daemons, d) {
			add("daemons", d, "running", "stopped")
		}
	}
	if want := b.Node.GPUDirect; want != "" && !gpuDirect(h, want) {
		add("gpudirect", "GPUDirect", want, reach(h))
	}
	if b.Node.ClockSync {
		if c, ok := h.Clock.Get(); !ok || !c.Synchronised {
			add("clock_sync", "clock", "synchronised", map[bool]string{true: "not synchronised"}[ok])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Ports)) {
		add("port", name, b.Ports[name].String(), ports(h)[name].String())
	}
	return out
}

// String writes a port as "infiniband 400 Gb/s"; one that is not active is
// "down".
func (p Port) String() string {
	if p.Layer == "" {
		return "down"
	}
	return fmt.Sprintf("%s %g Gb/s", p.Layer, p.Rate)
}

// ports are the active ones, as a baseline names them.
func ports(h *gpu.Host) map[string]Port {
	out := map[string]Port{}
	for _, p := range h.Ports {
		if p.State == "active" {
			out[fmt.Sprintf("%s/%d", p.Device, p.Port)] = Port{Layer: p.Layer, Rate: p.Rate.Or(0)}
		}
	}
	return out
}

// reach is by what GPUDirect works; "none" by nothing, "" is not known.
func reach(h *gpu.Host) string {
	d, ok := h.GPUDirect.Get()
	switch {
	case !ok:
		return ""
	case d.DMABuf:
		return "dmabuf"
	case d.Peermem:
		return "peermem"
	}
	return "none"
}

func gpuDirect(h *gpu.Host, want string) bool {
	d, _ := h.GPUDirect.Get()
	return want != "peermem" && d.DMABuf || want != "dmabuf" && d.Peermem
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
