package node

import (
	"maps"
	"slices"
)

// Forgive takes a person's word that the GPUs that only names (nil: all) are
// repaired: what the kernel log and the counters have said of them until this
// look counts no more. It is called between Read and Judge, which then remembers
// the new beginning of those that are good now.
func (l *Look) Forgive(only []string) {
	m, n, seq := &l.Memory, &l.Reading.Node, l.kernelSeq()
	m.GPUs, m.Rates, m.AppErrors = maps.Clone(m.GPUs), maps.Clone(m.Rates), maps.Clone(m.AppErrors)
	if m.GPUs == nil {
		m.GPUs = map[string]Good{}
	}
	for i := range n.GPUs {
		g := &n.GPUs[i]
		if g.UUID == "" || only != nil && !slices.Contains(only, g.UUID) {
			continue
		}
		f := m.good(g.UUID)
		f.Time, f.Seq, f.Counters = n.Time, max(f.Seq, seq), pick(g.Counters, compared)
		m.GPUs[g.UUID] = f
		m.forget(g.UUID)
	}
	if only == nil {
		m.NodeSeq = max(m.NodeSeq, seq)
	}
}

// Forgiven has the node forget what it held against cards that Judge has found
// good after Forgive.
func (l *Look) Forgiven(uuids []string) error {
	return l.store.Update(l.BootID, func(m *Memory) {
		for _, u := range uuids {
			m.forget(u)
		}
	})
}

// forget drops what is remembered of a card beside its last good look.
func (m *Memory) forget(uuid string) {
	delete(m.Rates, uuid)
	delete(m.AppErrors, uuid)
}
