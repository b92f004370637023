//go:build cgo

package main

import (
	"time"

	"gpuhooks/internal/host"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/xid"
)

// kernelFollower reads the kernel log on from where it was.
type kernelFollower struct {
	log    *host.KernelLog
	parser xid.Parser
	seq    uint64
}

// follow opens the log behind a record; nil where it cannot be read, and then
// every run's events are incomplete.
func follow(fs host.FS, after uint64, now time.Time) *kernelFollower {
	log, err := openKernel(fs, after, now)
	if err != nil {
		return nil
	}
	return &kernelFollower{log: log, seq: after}
}

// more returns what came since the last call, and whether that is all.
func (k *kernelFollower) more() (events []xid.Event, whole bool) {
	if k == nil {
		return nil, false
	}
	b, err := xid.Scan(k.log, &k.parser)
	k.seq = max(k.seq, b.LastSeq)
	return b.Events, err == nil && b.Lost == 0
}

func (k *kernelFollower) close() {
	if k != nil {
		_ = k.log.Close()
	}
}

// place is what a run's events are chosen by.
type place struct {
	uuid string
	gi   int // -1: the whole GPU
}

// take adds the events after the run's own record that concern its cards.
func (r *jobRun) take(events []xid.Event, whole bool, after uint64) {
	if !whole {
		r.incomplete = true
	}
	added := false
	for _, e := range events {
		uuid, ok := r.concerns(e)
		if !ok || e.Last <= after {
			continue
		}
		e.UUID = uuid
		r.events = append(r.events, e)
		added = true
	}
	if added {
		r.events = xid.Collapse(r.events)
	}
}

// concerns finds the device of the run that an event is about. What happens in
// a neighbour's instance on the same card is not the run's.
func (r *jobRun) concerns(e xid.Event) (uuid string, ok bool) {
	gi, known := e.GI.Get()
	for _, c := range r.cards[e.PCI] {
		if !known || c.gi < 0 || c.gi == gi {
			return c.uuid, true
		}
	}
	return "", false
}

// firstEvents reads what the kernel log already holds for a run, and returns
// up to where. A job whose prolog could not read the log has no number to begin
// at: then the time of its start must do.
func (r *jobRun) firstEvents(fs host.FS, job runs.Job, now time.Time) (seq uint64) {
	k := readKernel(fs, job.KernelSeq, nil, now)
	whole := k.Fault == nil && (k.Lost == 0 || job.KernelSeq == 0)
	if job.KernelSeq == 0 {
		kept := k.Events[:0]
		for _, e := range k.Events {
			if !e.Until.Before(job.Start.Time) {
				kept = append(kept, e)
			}
		}
		k.Events = kept
	}
	r.take(k.Events, whole, 0)
	return k.LastSeq
}
