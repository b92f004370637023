package drain

import (
	"slices"
	"sort"
	"time"

	"gpuhooks/internal/slurmctl"
)

// Brake limits how many nodes may be drained with the same code.
type Brake struct {
	Min      int           // this many always may
	Fraction float64       // of the cluster's nodes, 0..1
	Window   time.Duration // older drains do not count; 0 counts all
}

// Limit is how many of that many nodes may be drained with one code.
func (b Brake) Limit(nodes int) int {
	return max(b.Min, int(b.Fraction*float64(nodes)))
}

// drainedWith lists the nodes drained with our code within the window, the
// first drained first. A drain without a time counts as recent.
func drainedWith(nodes []slurmctl.Node, code string, b Brake, now time.Time) []slurmctl.Node {
	var out []slurmctl.Node
	for _, n := range nodes {
		c, ok := CodeOf(n.Reason)
		at, timed := n.ReasonTime.Get()
		old := b.Window > 0 && timed && now.Sub(at) > b.Window
		if ok && c == code && n.Drained() && !old {
			out = append(out, n)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		x, y := out[i].ReasonTime.Or(time.Time{}), out[j].ReasonTime.Or(time.Time{})
		return x.Before(y) || x.Equal(y) && out[i].Name < out[j].Name
	})
	return out
}

// holds says whether one more node with that code would be above the limit.
func (b Brake) holds(nodes []slurmctl.Node, node, code string, now time.Time) (held bool, count, limit int) {
	others := slices.DeleteFunc(drainedWith(nodes, code, b, now), func(n slurmctl.Node) bool { return n.Name == node })
	limit = b.Limit(len(nodes))
	return len(others) >= limit, len(others), limit
}

// exceeded says whether the node, drained by us, is one too many: nodes that
// drain at the same moment do not see one another, and all agree on the order
// in which they were drained.
func (b Brake) exceeded(nodes []slurmctl.Node, node, code string, now time.Time) (over bool, count, limit int) {
	all := drainedWith(nodes, code, b, now)
	limit = b.Limit(len(nodes))
	rank := slices.IndexFunc(all, func(n slurmctl.Node) bool { return n.Name == node })
	return rank >= limit, len(all), limit
}
