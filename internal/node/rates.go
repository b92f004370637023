package node

import (
	"fmt"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
)

// rateAge is how old the look must be that a rate begins at before a later one
// takes its place: hooks may look every second.
const rateAge = time.Minute

// Bounds on what is remembered to make rates of: cards, their ports on the bus,
// RDMA ports, and how much each of them counts.
const (
	maxRates    = 1024
	maxCounters = 64
)

// Rate is an earlier look at something that counts.
type Rate struct {
	Time     time.Time    `json:"time"`
	Counters gpu.Counters `json:"counters,omitempty"`
	Suspect  []string     `json:"suspect,omitempty"` // checks that wait for a second look
}

// learnRates remembers what the next look makes rates of.
func (m *Memory) learnRates(in check.Input) {
	if m.Rates == nil || len(m.Rates) > maxRates {
		m.Rates = map[string]Rate{}
	}
	now := in.Node.Time
	for i := range in.Node.GPUs {
		g := &in.Node.GPUs[i]
		at := g.Time
		if at.IsZero() {
			at = now
		}
		if g.Complete {
			m.rate(g.UUID, Rate{at, pick(g.Counters, check.Rated), check.Suspects(in, g)})
		}
	}
	count := func(key string, c gpu.Counters) {
		if key != "" && len(c) > 0 && len(c) <= maxCounters { // not read is not 0
			m.rate(key, Rate{Time: now, Counters: c})
		}
	}
	for _, p := range in.Node.Presence.PCI {
		count(p.Address, p.AER)
		slot := p.Slot.Or(gpu.PCISlot{})
		count(slot.Address, slot.AER)
	}
	if in.Node.Host != nil {
		for _, p := range in.Node.Host.Ports {
			count(fmt.Sprintf("%s/%d", p.Device, p.Port), p.Counters)
		}
	}
}

// rate replaces an earlier look unless that is young yet. A shared reading may be
// older than what is remembered.
func (m *Memory) rate(key string, r Rate) {
	if old, ok := m.Rates[key]; !ok || r.Time.Sub(old.Time) >= rateAge {
		m.Rates[key] = r
	}
}

// last is what checks make rates of.
func (m *Memory) last() map[string]check.Before {
	out := map[string]check.Before{}
	for key, r := range m.Rates {
		out[key] = check.Before{Time: r.Time, Counters: r.Counters, Suspect: r.Suspect}
	}
	return out
}
