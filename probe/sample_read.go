//go:build cgo

package main

import (
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
			plan[d] = &job{extent: nvml.Usual}
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
	s.ask(plan)
	s.collect(plan, wait)
}

// ask sends the requests. A device that is still busy with an earlier one is
// left alone.
func (s *loopState) ask(plan map[*device]*job) {
	for d, j := range plan {
		if d.busy && !s.answered(d, nil) {
			delete(plan, d)
			continue
		}
		j.into = s.buffer()
		d.busy = true
		d.work <- *j
	}
}

// collect waits for the answers and hands them out.
func (s *loopState) collect(plan map[*device]*job, wait time.Duration) {
	over := make(chan time.Time)
	close(over)
	late := time.After(wait)
	for d := range plan {
		if !s.answered(d, late) {
			late = over // for the others, too
		}
	}
}

// answered takes a device's answer, waiting for it until late (nil: not at all).
func (s *loopState) answered(d *device, late <-chan time.Time) bool {
	select {
	case <-d.done:
	default:
		if late == nil {
			return false
		}
		select {
		case <-d.done:
		case <-late:
			return false
		}
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
		if len(d.runs) > 0 || d.busy && !s.answered(d, nil) {
			continue
		}
		if d.buffer != nil {
			d.buffer.users--
		}
		close(d.work)
		delete(s.devices, uuid)
	}
}
