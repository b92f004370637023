//go:build cgo

package main

import (
	"context"
	"time"

	"gpuhooks/internal/host"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/xid"
)

// kernelFollower reads the kernel log on from where it was. What was overwritten
// before it came is asked of the journal, which answers in its own time.
type kernelFollower struct {
	log     *host.KernelLog
	parser  xid.Parser
	seq     uint64
	journal journal
	boot    time.Time
	answers chan filled
	pending int // questions without an answer yet
}

// maxQuestions bounds how many answers of the journal are waited for.
const maxQuestions = 4

// follow opens the log behind a record; nil where it cannot be read, and then
// every run's events are incomplete.
func follow(fs host.FS, after mark, now time.Time, j journal) *kernelFollower {
	log, err := openKernel(fs, after.Seq, now)
	if err != nil {
		return nil
	}
	log.SeekTime(after.Usec)
	k := &kernelFollower{log: log, seq: after.Seq, journal: j, answers: make(chan filled, maxQuestions)}
	if k.boot, err = fs.BootTime(now); err != nil {
		k.journal = ""
	}
	return k
}

// more returns what came since the last call, and whether that is all, but for
// what the journal is still asked for (waiting).
func (k *kernelFollower) more() (events []xid.Event, whole bool) {
	if k == nil {
		return nil, false
	}
	b, err := xid.Scan(k.log, &k.parser)
	k.seq = max(k.seq, b.LastSeq)
	events, lost := b.Events, b.Lost
	for _, g := range b.Gaps {
		if k.journal == "" || g.Since == 0 || k.pending == maxQuestions {
			continue
		}
		lost -= g.Lost
		k.pending++
		go k.ask(g)
	}
	for len(k.answers) > 0 {
		got := <-k.answers
		k.pending--
		events = append(got.events, events...)
		lost += got.lost
	}
	return events, err == nil && lost == 0
}

// ask asks the journal about one gap. Whatever happens there is an answer.
func (k *kernelFollower) ask(g host.Overrun) {
	got := filled{lost: g.Lost}
	defer func() {
		_ = recover() // the gap then stays one
		k.answers <- got
	}()
	got = k.journal.fill(context.Background(), g, k.boot)
}

// waiting says that the journal has not answered yet: whether the events are
// whole is not known.
func (k *kernelFollower) waiting() bool { return k != nil && k.pending > 0 }

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
// up to where and when. A job whose prolog could not read the log has no number to begin
// at: then the time of its start must do.
func (r *jobRun) firstEvents(fs host.FS, job runs.Job, known marks, now time.Time) mark {
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
	if k.last == 0 {
		k.last = known.time(k.LastSeq)
	}
	return mark{k.LastSeq, k.last}
}
