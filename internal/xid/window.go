package xid

import (
	"slices"
	"time"

	"gpuhooks/internal/gpu"
)

// Window says which events still count for the node's health. A job's record
// wants all of them and needs no Window.
type Window struct {
	Boot   string               // present boot: what is marked with another one does not count
	After  gpu.Opt[uint64]      // number of the last record that a good look of this boot has judged
	Loaded gpu.Opt[uint64]      // number of the record with which the driver was loaded (Parser.Loaded)
	Probed map[string]uint64    // numbers of the records with which NVSwitches were taken in, by address (Parser.Probed)
	Resets map[string]time.Time // when a GPU was last reset, by PCI bus id or UUID
}

// Live returns the events that nothing has cancelled: neither an earlier good
// look, another boot, a reload of the driver, a reset of the GPU, nor the
// driver's word that it recommends nothing any more (154 to None).
func (w Window) Live(events []Event) []Event {
	// A later 154 of the same GPU replaces the earlier ones.
	verdict := map[string]Event{}
	for _, e := range events {
		if e.Kind == KindXID && e.Code == 154 && e.To.IsSet() && e.PCI != "" && w.here(e) && e.after(verdict[e.PCI]) {
			verdict[e.PCI] = e
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		if !w.here(e) || w.judged(e) || w.reset(e) {
			return true
		}
		last, ok := verdict[e.PCI]
		if !ok || !last.after(e) {
			return false
		}
		return last.To.Or(0) == 0 || e.Code == 154 && e.Kind == KindXID
	})
}

func (w Window) here(e Event) bool { return e.Boot == "" || w.Boot == "" || e.Boot == w.Boot }

func (w Window) judged(e Event) bool {
	after, ok := w.After.Get()
	loaded, reloaded := w.Loaded.Get()
	probed, taken := w.Probed[e.PCI]
	return ok && e.Last <= after || reloaded && e.Last < loaded || taken && e.Kind == KindSXID && e.Last < probed
}

func (w Window) reset(e Event) bool {
	if e.Until.IsZero() {
		return false
	}
	for _, name := range []string{e.PCI, e.UUID} {
		if at, ok := w.Resets[name]; ok && name != "" && e.Until.Before(at) {
			return true
		}
	}
	return false
}

// after says whether e's last record came later than o's. Events of a log
// without numbers go by time.
func (e Event) after(o Event) bool {
	if e.Last != o.Last {
		return e.Last > o.Last
	}
	return e.Until.After(o.Until)
}
