//go:build cgo

package main

import (
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/sampler"
	"gpuhooks/internal/xid"
)

// jobRun is one live run.
type jobRun struct {
	name       runs.Name
	job        runs.Job
	from       time.Time // first sample
	parts      []*part
	cards      map[string][]place // by PCI address
	events     []xid.Event
	incomplete bool
	seq        uint64      // events up to here were taken at the start
	soon       []time.Time // looks between the ticks while the run is young
	saved      time.Time
}

// A run is looked at between ticks while it is young: its processes and its
// memory would not be seen at all if it ended before the first tick.
var youngLooks = []time.Duration{time.Second, 2500 * time.Millisecond}

// deviceUUID is the UUID of what the job has: the instance, else the card.
func deviceUUID(p runs.DevicePoint) string {
	if p.Instance != nil {
		return p.Instance.UUID
	}
	return p.UUID
}

// newRun prepares a run; its parts come with the first read of its devices.
func newRun(name runs.Name, job runs.Job) *jobRun {
	r := &jobRun{name: name, job: job, cards: map[string][]place{}}
	for _, p := range job.Start.Devices {
		gi := -1
		if p.Instance != nil {
			gi = p.Instance.GI
		}
		r.cards[p.PCI] = append(r.cards[p.PCI], place{uuid: deviceUUID(p), gi: gi})
	}
	return r
}

// begin takes the devices as they are now for the run's beginning. old is what
// an earlier sampler of the run left, or nil.
func (r *jobRun) begin(devices []*device, o sampleOptions, now time.Time, old *runs.Sums) {
	r.from = now
	for _, d := range devices {
		if !d.busy && !d.lost && !d.now.Time.IsZero() && d.now.Time.Before(r.from) {
			r.from = d.now.Time
		}
	}
	if old != nil {
		r.from = old.From
		r.events, r.incomplete = old.Events, old.EventsIncomplete
	}
	options := sampler.Options{Start: r.from, Tick: o.tick, Series: o.series}
	for _, d := range devices {
		p := &part{dev: d, from: now}
		p.acc = sampler.New(d.uuid, options)
		if old != nil {
			for _, s := range old.Devices {
				if s.UUID == d.uuid {
					p.acc = sampler.Resume(s, options)
					p.acc.Gap() // nobody looked in between
				}
			}
		}
		if !d.busy {
			for _, f := range d.faults {
				p.acc.Fault(f)
			}
			p.begin()
		}
		d.runs = append(d.runs, p)
		r.parts = append(r.parts, p)
	}
	for _, after := range youngLooks {
		if after < o.tick {
			r.soon = append(r.soon, now.Add(after))
		}
	}
	r.saved = now
}

// sums is what the run has come to.
//
// Without a driver there is nothing but why.
func (r *jobRun) sums(o sampleOptions, why gpu.Fault, seq uint64, final bool) runs.Sums {
	s := runs.Sums{
		Schema: runs.SumsSchema, BootID: r.job.BootID, Version: cli.Version(),
		From: r.from.UTC(), To: r.from.UTC(), Final: final, Tick: o.tick.Seconds(),
		Events: r.events, EventsIncomplete: r.incomplete, KernelSeq: seq,
	}
	for _, p := range r.parts {
		if p.dev.busy { // its goroutine is in the driver: it has not answered
			p.acc.Fault(gpu.Fault{Call: "sampler", Kind: gpu.FaultTimeout, Text: "a driver call did not return in time"})
		} else if t := p.dev.now.Time.UTC(); t.After(s.To) {
			s.To = t
		}
		if final && !p.dev.busy && p.exact != nil {
			p.acc.Exact(p.exact, p.over)
		}
		s.Devices = append(s.Devices, p.acc.Sums())
	}
	if len(r.parts) == 0 {
		for _, p := range r.job.Start.Devices {
			none := sampler.New(deviceUUID(p), sampler.Options{})
			none.Fault(why)
			s.Devices = append(s.Devices, none.Sums())
		}
	}
	return s
}

// leave takes the run off its devices.
func (r *jobRun) leave() {
	for _, p := range r.parts {
		p.drop()
		for i, q := range p.dev.runs {
			if q == p {
				p.dev.runs = append(p.dev.runs[:i], p.dev.runs[i+1:]...)
				break
			}
		}
	}
}
