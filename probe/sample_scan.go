//go:build cgo

package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"gpuhooks/internal/runs"
)

// scan looks which runs are there: new ones, and ours that end. Runs that
// somebody closed without us are forgotten.
func (s *loopState) scan() (fresh []*jobRun, ended []*jobRun, err error) {
	for again := true; again; {
		again = false
		fresh, ended = nil, nil
		list, err := s.dir.List()
		if err != nil {
			return nil, nil, err
		}
		there := map[runs.Name]bool{}
		refused := s.refused
		s.refused = map[runs.Name]time.Time{}
		for _, found := range list {
			if at, ok := refused[found.Name]; ok {
				s.refused[found.Name] = at
			}
			r := s.runs[found.Name]
			switch {
			case r != nil && found.Live():
				there[found.Name] = true
				if !found.End.IsZero() {
					ended = append(ended, r)
				}
			case r == nil && found.Live() && !s.refused[found.Name].Equal(found.Changed):
				job, ok := s.accept(found)
				if !ok {
					s.refused[found.Name] = found.Changed
					continue
				}
				// An `end` that came before the watch would never be seen.
				again = s.watch.add(s.dir.Path(found.Name)) || again
				fresh = append(fresh, newRun(found.Name, job))
			}
		}
		for name, r := range s.runs {
			if !there[name] {
				s.watch.forget(s.dir.Path(name))
				r.leave()
				delete(s.runs, name)
			}
		}
	}
	return fresh, ended, nil
}

// accept reads a run that is to be sampled.
func (s *loopState) accept(found runs.Run) (runs.Job, bool) {
	if !wanted(s.dir, found, s.bootID) {
		return runs.Job{}, false
	}
	job, err := s.dir.ReadJob(found.Name, s.bootID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.say("run %s: %v", found.Name, err)
	}
	return job, err == nil
}

// begin takes a new run in, now that its devices were read.
func (s *loopState) begin(r *jobRun, now time.Time) {
	var old *runs.Sums
	if sums, err := s.dir.ReadSums(r.name, s.bootID); err == nil && !sums.Final {
		old = &sums
	}
	var devices []*device
	for _, p := range r.job.Start.Devices {
		if s.lib != nil {
			devices = append(devices, s.device(deviceUUID(p)))
		}
	}
	r.begin(devices, s.o, now, old)
	if s.runs[r.name] == nil {
		at := r.firstEvents(s.fs, r.job, loadMarks(filepath.Join(s.o.run, marksName), s.bootID), now)
		r.seq = at.Seq
		s.runs[r.name] = r
		if s.kernel == nil {
			s.kernel = follow(s.fs, at, now, journal(s.o.journal))
		}
	}
	if s.lib == nil {
		s.say("run %s: no samples: %v", r.name, s.fault)
	}
}

// finish writes a run's last sums and forgets it.
func (s *loopState) finish(r *jobRun) {
	s.save(r, true, false)
	r.leave()
	s.watch.forget(s.dir.Path(r.name))
	delete(s.runs, r.name)
}

// save writes what a run has come to, and into the spool as well if asked.
func (s *loopState) save(r *jobRun, final, checkpoint bool) {
	seq := r.seq
	if s.kernel != nil {
		seq = max(seq, s.kernel.seq)
	}
	sums := r.sums(s.o, s.fault, seq, final)
	sums.EventsIncomplete = sums.EventsIncomplete || s.kernel.waiting()
	if err := s.dir.WriteSums(r.name, sums); err != nil {
		s.say("run %s: %v", r.name, err)
	}
	if !checkpoint {
		return
	}
	r.saved = time.Now()
	// Without the job nobody could say afterwards whose run it was: /run is gone.
	b, err := runs.Checkpoint{Job: r.job, Sums: sums}.Encode()
	if err != nil {
		s.say("run %s: checkpoint: %v", r.name, err)
		return
	}
	s.spool.put(r.name, b)
}

func (s *loopState) saveAll() {
	for _, r := range s.runs {
		s.save(r, false, true)
	}
}
