package xid

import (
	"slices"
	"strings"

	"gpuhooks/internal/gpu"
)

// maxDistinct bounds how many different events are kept; ten thousand lines of
// one teardown are a single one. With the bounds on their texts they fit into one
// line of the probe.
const maxDistinct = 320

// Collector joins like events as they come: the same card, code and demand.
// The zero value is ready.
type Collector struct {
	events  []Event
	at      map[eventKey]int
	dropped int
}

// Add takes one more event, and says whether it is the first of its like.
func (c *Collector) Add(e Event) (fresh bool) {
	key := e.key()
	if i, ok := c.at[key]; ok {
		c.events[i].join(e)
		return false
	}
	if len(c.events) == maxDistinct {
		c.dropped += e.Count
		return false
	}
	if c.at == nil {
		c.at = map[eventKey]int{}
	}
	c.at[key] = len(c.events)
	c.events = append(c.events, e)
	return true
}

// Events returns what was collected, in the order of first appearance.
func (c *Collector) Events() []Event { return slices.Clone(c.events) }

// Dropped is how many events found no place. They were of kinds not seen before,
// so that what Events returns is incomplete.
func (c *Collector) Dropped() int { return c.dropped }

// Collapse joins like events into one each, with count, first and last.
func Collapse(events []Event) []Event {
	var c Collector
	for _, e := range events {
		c.Add(e)
	}
	return c.Events()
}

// eventKey is equal for events that ask for the same. Process and text do not
// count: the first ones stand for all.
type eventKey struct {
	boot, pci         string
	kind              Kind
	code, causedBy    int
	gi, ci, to        gpu.Opt[int]
	reset, drainReset gpu.Opt[bool]
	link              LinkReport
	stopped           bool
}

func (e Event) key() eventKey {
	k := eventKey{boot: e.Boot, pci: e.PCI, kind: e.Kind, code: e.Code, causedBy: e.CausedBy,
		gi: e.GI, ci: e.CI, to: e.To, reset: e.Reset, drainReset: e.DrainReset}
	if e.Link != nil {
		k.link = *e.Link
	}
	k.stopped = e.Kind == KindGSP && gspStopped(e.Text)
	return k
}

// join adds a later event of the same key. An SXid is printed as three lines:
// its severity as a word, then as a number, then data. They count as one.
func (e *Event) join(o Event) {
	if o.Kind != KindSXID || !strings.HasPrefix(o.Text, "Severity ") && o.Switch != SwitchData {
		e.Count += o.Count
	}
	if o.Seq < e.Seq {
		e.Seq, e.First = o.Seq, o.First
	}
	if o.Last > e.Last || (o.Last == e.Last && o.Until.After(e.Until)) {
		e.Last, e.Until = o.Last, o.Until
	}
	if o.Switch.rank() > e.Switch.rank() {
		e.Switch, e.Text = o.Switch, o.Text
	}
}

// Assign sets the UUID of events whose card the map knows, by NVML bus id.
func Assign(events []Event, uuidByPCI map[string]string) {
	for i := range events {
		if uuid, ok := uuidByPCI[events[i].PCI]; ok {
			events[i].UUID = uuid
		}
	}
}

// UUIDs builds Assign's map from what the driver shows without NVML, so that it
// knows a card that NVML has lost.
func UUIDs(proc []gpu.ProcGPU, gpus []gpu.GPU) map[string]string {
	m := map[string]string{}
	for _, g := range proc {
		if g.UUID != "" {
			m[g.Address] = g.UUID
		}
	}
	for _, g := range gpus {
		if g.UUID != "" {
			m[g.PCI] = g.UUID
		}
	}
	return m
}

// Cause finds the event that the teardown of a channel (XID 45) at index i
// followed: the last one on the same GPU before it that is no teardown itself.
// The driver's "caused by" says it better where the line has one.
func Cause(events []Event, i int) (found Event, ok bool) {
	e := events[i]
	for _, o := range events {
		teardown := o.Kind == KindXID && (o.Code == 45 || o.Code == 154)
		about := o.Kind == KindXID || o.Kind == KindFallen
		if about && !teardown && o.PCI == e.PCI && o.PCI != "" && e.begins(o) && (!ok || !found.begins(o)) {
			found, ok = o, true
		}
	}
	return found, ok
}

// begins says whether e's first record came after o's.
func (e Event) begins(o Event) bool {
	if e.Seq != o.Seq {
		return e.Seq > o.Seq
	}
	return e.First.After(o.First)
}
