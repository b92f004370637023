//go:build cgo

package main

import (
	"runtime"
	"sync/atomic"
	"time"

	"gpuhooks/internal/nvml"
)

// processesEvery is after how many ticks the processes are listed again.
const processesEvery = 12

// read looks at the devices: all on a tick, those of young runs in between,
// those of runs that begin or end at once.
func (s *loopState) read(now time.Time, due bool, fresh, ended []*jobRun) {
	if s.lib == nil {
		return
	}
	plan := map[*device]*job{}
	want := func(d *device) *job {
		if plan[d] == nil {
			plan[d] = &job{dev: d, extent: nvml.Usual}
		}
		return plan[d]
	}
	if due {
		for _, d := range s.devices {
			if len(d.runs) > 0 {
				want(d)
			}
		}
		if s.ticks++; s.ticks%processesEvery == 0 {
			for _, j := range plan {
				j.extent = nvml.WithProcesses
			}
		}
	}
	for _, r := range s.runs {
		if len(r.soon) > 0 && !now.Before(r.soon[0]) {
			for _, p := range r.parts {
				if j := want(p.dev); len(r.soon) == len(youngLooks) { // the first time only: else no temperature
					j.extent = nvml.WithProcesses
				}
			}
		}
	}
	for _, r := range fresh {
		for _, p := range r.job.Start.Devices {
			want(s.device(deviceUUID(p)))
		}
	}
	wait := startWait
	for _, r := range ended {
		wait = endWait
		for _, p := range r.parts {
			j := want(p.dev)
			j.extent = nvml.Last
			j.ending = append(j.ending, p)
		}
	}
	s.collect(plan, s.ask(plan), wait)
}

// How long one worker may take for all devices before others help: waking eight
// threads costs more than the calls of a driver that answers at once. Only an
// epilog is in a hurry.
const (
	patience = 50 * time.Millisecond
	hurry    = 3 * time.Millisecond
)

// batch are the reads of one look.
type batch struct {
	left atomic.Int32
	done chan struct{} // closed with the last of them
}

// ask queues the reads. A device that is still busy with an earlier one is left
// alone.
func (s *loopState) ask(plan map[*device]*job) *batch {
	b := &batch{done: make(chan struct{})}
	for d := range plan {
		if d.busy && !s.answered(d) || len(s.work)+len(plan) > cap(s.work) {
			delete(plan, d)
		}
	}
	b.left.Store(int32(len(plan)))
	for d, j := range plan {
		j.into, j.batch = s.buffer(), b
		d.busy = true
		s.work <- *j
	}
	return b
}

// collect waits for the answers and hands them out.
func (s *loopState) collect(plan map[*device]*job, b *batch, wait time.Duration) {
	if len(plan) == 0 {
		return
	}
	alone := patience
	if wait == endWait {
		alone = hurry
	}
	select {
	case <-b.done:
		if s.helped {
			s.helped = false
			runtime.GOMAXPROCS(1)
		}
	case <-time.After(alone):
		s.helped = true
		runtime.GOMAXPROCS(len(plan) + 1)
		for range len(plan) {
			go s.help()
		}
		select {
		case <-b.done:
		case <-time.After(wait):
		}
	}
	for d := range plan {
		s.answered(d)
	}
}

// serve is the worker that is always there; it may hang in a call.
func (s *loopState) serve() {
	for {
		select {
		case j := <-s.work:
			j.do()
		case <-s.stopped:
			return
		}
	}
}

// help works until nothing is queued.
func (s *loopState) help() {
	for {
		select {
		case j := <-s.work:
			j.do()
		default:
			return
		}
	}
}

func (j job) do() {
	j.dev.read(j)
	j.dev.done <- struct{}{}
	if j.batch.left.Add(-1) == 0 {
		close(j.batch.done)
	}
}

// answered takes a device's answer, if it is there.
func (s *loopState) answered(d *device) bool {
	select {
	case <-d.done:
	default:
		return false
	}
	d.busy = false
	if d.before != nil {
		d.before.users--
	}
	nameProcesses(d.now.Processes)
	d.deliver()
	return true
}

// buffer returns a buffer for an activity sample that nobody uses, with one
// user; nil where the driver has none.
func (s *loopState) buffer() *gpmBuffer {
	for _, b := range s.buffers {
		if b.users == 0 {
			b.users, b.at = 1, time.Time{}
			return b
		}
	}
	sample, ok := s.lib.NewGPMSample()
	if !ok {
		return nil
	}
	b := &gpmBuffer{sample: sample, users: 1}
	s.buffers = append(s.buffers, b)
	return b
}

// drop lets go of devices that no run has any more.
func (s *loopState) drop() {
	for uuid, d := range s.devices {
		if len(d.runs) > 0 || d.busy && !s.answered(d) {
			continue
		}
		if d.buffer != nil {
			d.buffer.users--
		}
		delete(s.devices, uuid)
	}
}
