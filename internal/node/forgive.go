package node

import "slices"

// Forgive takes a person's word that the GPUs that only names (nil: all) are
// repaired: what the kernel log and the error counters have said of them until
// this look counts no more. It is called between Read and Judge, which then
// remembers the new beginning of those that are good now.
func (l *Look) Forgive(only []string) {
	n := &l.Reading.Node
	seq := l.kernelSeq()
	good := map[string]Good{}
	for uuid, g := range l.Memory.GPUs {
		good[uuid] = g
	}
	for i := range n.GPUs {
		g := &n.GPUs[i]
		if g.UUID == "" || only != nil && !slices.Contains(only, g.UUID) {
			continue
		}
		f := l.Memory.good(g.UUID)
		f.Time, f.Seq, f.Counters = n.Time, max(f.Seq, seq), pick(g.Counters, compared)
		good[g.UUID] = f
	}
	l.Memory.GPUs = good
	if only == nil {
		l.Memory.NodeSeq = max(l.Memory.NodeSeq, seq)
	}
}
