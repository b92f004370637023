package node

import (
	"slices"

	"gpuhooks/internal/check"
)

// maxStuck bounds the threads that are remembered.
const maxStuck = 64

// learnStuck replaces the threads that waited inside the driver by those that do
// now; one in the same wait keeps the time at which it was first seen. A look
// that could not see all processes forgets none.
func (m *Memory) learnStuck(in check.Input) {
	h := in.Node.Host
	if h == nil {
		return
	}
	var now []check.Stuck
	for _, s := range h.Stuck[:min(len(h.Stuck), maxStuck)] {
		seen := check.Stuck{Stuck: s, First: in.Node.Time}
		if i := slices.IndexFunc(m.Stuck, func(o check.Stuck) bool { return check.SameWait(o.Stuck, s) }); i >= 0 {
			seen.First = m.Stuck[i].First
		}
		now = append(now, seen)
	}
	if len(h.Faults) > 0 {
		for _, o := range m.Stuck {
			known := slices.ContainsFunc(now, func(n check.Stuck) bool { return check.SameWait(n.Stuck, o.Stuck) })
			if !known && len(now) < maxStuck {
				now = append(now, o)
			}
		}
	}
	m.Stuck = now
}
