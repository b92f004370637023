package baseline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
)

// Item is one thing in which the cards of a kind are alike.
type Item struct {
	Key   string // in the [card] tables of the file
	Label string // for people
	// Have is what a card has, as the file and a person would write it; false
	// when the driver does not say.
	Have func(*gpu.GPU) (string, bool)

	want  func(*Card) []string  // what is expected, one of them; none is not judged
	learn func(*Card, *gpu.GPU) // takes over what a card has
	byAll bool                  // learnt only where all cards of a kind are alike: nodes are divided on purpose
}

// Want is what a baseline expects of the card: one of these. None means that it
// is not judged.
func (i Item) Want(b Baseline, g *gpu.GPU) []string {
	c, ok := b.Cards[g.Name]
	if !ok {
		return nil
	}
	return i.want(&c)
}

// Find returns the item with that key.
func Find(key string) Item {
	return items[slices.IndexFunc(items, func(i Item) bool { return i.Key == key })]
}

// items stand in the order of the file.
var items = []Item{
	text("vbios", "VBIOS", func(g *gpu.GPU) gpu.Opt[string] { return g.VBIOS }, func(c *Card) *[]string { return &c.VBIOS }),
	text("inforom", "InfoROM", func(g *gpu.GPU) gpu.Opt[string] { return g.InfoROM }, func(c *Card) *[]string { return &c.InfoROM }),
	text("gsp", "GSP firmware", func(g *gpu.GPU) gpu.Opt[string] { return g.GSP }, func(c *Card) *[]string { return &c.GSP }),
	number("pcie_gen", "PCIe generation", "%d", func(g *gpu.GPU) gpu.Opt[int] { return g.PCIeMaxGen }, func(c *Card) *int { return &c.PCIeGen }),
	number("pcie_width", "PCIe lanes", "%d", func(g *gpu.GPU) gpu.Opt[int] { return g.Health.PCIeWidth }, func(c *Card) *int { return &c.PCIeWidth }),
	{
		Key: "nvlinks", Label: "active NVLinks",
		Have: func(g *gpu.GPU) (string, bool) { return show(g.Health.NVLinksActive, "%d") },
		want: func(c *Card) []string {
			if n, ok := c.NVLinks.Get(); ok {
				return []string{strconv.Itoa(n)}
			}
			return nil
		},
		learn: func(c *Card, g *gpu.GPU) { c.NVLinks = g.Health.NVLinksActive },
	},
	number("power_limit_watts", "power limit", "%.0f W", func(g *gpu.GPU) gpu.Opt[float64] { return g.Health.PowerLimit }, func(c *Card) *float64 { return &c.PowerLimit }),
	number("sm_clock_limit_mhz", "SM clock limit", "%d MHz", func(g *gpu.GPU) gpu.Opt[int] { return g.Health.SMClockLimit }, func(c *Card) *int { return &c.SMClock }),
	number("memory_total_bytes", "memory", "%d bytes", func(g *gpu.GPU) gpu.Opt[uint64] { return g.Health.MemoryTotal }, func(c *Card) *uint64 { return &c.Memory }),
	word("ecc", "ECC", func(g *gpu.GPU) (string, bool) { return mode(g.Health.ECC) }, func(c *Card) *string { return &c.ECC }),
	together(word("mig", "MIG mode", func(g *gpu.GPU) (string, bool) { return mode(g.Health.MIG) }, func(c *Card) *string { return &c.MIG })),
	word("persistence", "persistence mode", func(g *gpu.GPU) (string, bool) { return onOff(g.Health.Persistence) }, func(c *Card) *string { return &c.Persistence }),
	word("compute_mode", "compute mode", func(g *gpu.GPU) (string, bool) { return g.Health.ComputeMode.Get() }, func(c *Card) *string { return &c.ComputeMode }),
	word("virtualization", "virtualization", func(g *gpu.GPU) (string, bool) { return g.Virtualization.Get() }, func(c *Card) *string { return &c.Virtualization }),
	flag("licensed", "vGPU licence", func(g *gpu.GPU) gpu.Opt[bool] { return g.Health.License }, func(c *Card) *bool { return &c.Licensed }),
	flag("fabric", "NVLink fabric", joined, func(c *Card) *bool { return &c.Fabric }),
	{
		Key: "instances", Label: "MIG instances", byAll: true,
		Have: func(g *gpu.GPU) (string, bool) { return profiles(count(g)), g.Complete },
		want: func(c *Card) []string {
			if c.Instances == nil {
				return nil
			}
			return []string{profiles(c.Instances)}
		},
		learn: func(c *Card, g *gpu.GPU) {
			if m, ok := g.Health.MIG.Get(); ok && m.Current {
				c.Instances = count(g)
			}
		},
	},
}

// text is an item of which the file lists what is allowed.
func text(key, label string, have func(*gpu.GPU) gpu.Opt[string], in func(*Card) *[]string) Item {
	return Item{
		Key: key, Label: label,
		Have:  func(g *gpu.GPU) (string, bool) { return have(g).Get() },
		want:  func(c *Card) []string { return *in(c) },
		learn: func(c *Card, g *gpu.GPU) { *in(c) = append(*in(c), have(g).Or("")) },
	}
}

// number is an item for which 0 in the file is "not judged".
func number[T int | uint64 | float64](key, label, format string, have func(*gpu.GPU) gpu.Opt[T], in func(*Card) *T) Item {
	return Item{
		Key: key, Label: label,
		Have: func(g *gpu.GPU) (string, bool) { return show(have(g), format) },
		want: func(c *Card) []string {
			if *in(c) == 0 {
				return nil
			}
			return []string{fmt.Sprintf(format, *in(c))}
		},
		learn: func(c *Card, g *gpu.GPU) { *in(c) = have(g).Or(0) },
	}
}

// word is an item for which "" in the file is "not judged".
func word(key, label string, have func(*gpu.GPU) (string, bool), in func(*Card) *string) Item {
	return Item{
		Key: key, Label: label, Have: have,
		want: func(c *Card) []string {
			if *in(c) == "" {
				return nil
			}
			return []string{*in(c)}
		},
		learn: func(c *Card, g *gpu.GPU) { *in(c), _ = have(g) },
	}
}

// flag is an item that is only ever required, never forbidden.
func flag(key, label string, have func(*gpu.GPU) gpu.Opt[bool], in func(*Card) *bool) Item {
	return Item{
		Key: key, Label: label,
		Have: func(g *gpu.GPU) (string, bool) { return onOff(have(g)) },
		want: func(c *Card) []string {
			if !*in(c) {
				return nil
			}
			return []string{"on"}
		},
		learn: func(c *Card, g *gpu.GPU) { *in(c) = have(g).Or(false) },
	}
}

func together(i Item) Item {
	i.byAll = true
	return i
}

func show[T any](o gpu.Opt[T], format string) (string, bool) {
	v, ok := o.Get()
	return fmt.Sprintf(format, v), ok
}

func mode(o gpu.Opt[gpu.Switch]) (string, bool) {
	m, ok := o.Get()
	return switched(m.Current), ok
}

func onOff(o gpu.Opt[bool]) (string, bool) {
	on, ok := o.Get()
	return switched(on), ok
}

func switched(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// joined says whether the fabric has taken the card in.
func joined(g *gpu.GPU) gpu.Opt[bool] {
	f, ok := g.Health.Fabric.Get()
	if !ok {
		return gpu.Opt[bool]{}
	}
	return gpu.Some(f.State == "completed" && f.Status == 0)
}

// count is the number of a card's MIG instances by profile.
func count(g *gpu.GPU) map[string]int {
	n := map[string]int{}
	for _, i := range g.Instances {
		n[i.Profile]++
	}
	return n
}

// profiles writes them as "1g.10gb×7", in order.
func profiles(n map[string]int) string {
	var out []string
	for _, p := range slices.Sorted(maps.Keys(n)) {
		if n[p] > 0 {
			out = append(out, fmt.Sprintf("%s×%d", p, n[p]))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, " ")
}
