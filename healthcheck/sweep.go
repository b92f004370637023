package main

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/record"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurmctl"
	"gpuhooks/internal/spool"
	"gpuhooks/internal/xid"
)

// sweep deletes the state of runs that are over, as runs.Sweep chooses them. A
// run that no epilog has closed (slurmd was down, the node went down) gets its
// record first, from what prolog and sampler left.
func (h *hook) sweep() {
	dir := runs.Dir(h.cfg.Paths.Run)
	list, err := dir.List()
	if err != nil {
		h.log.Warnf("runs: %v", err)
		return
	}
	remove, forgotten := runs.Sweep(list, h.env.Now(), h.knows())
	for _, r := range remove {
		if slices.ContainsFunc(forgotten, func(f runs.Run) bool { return f.Name == r.Name }) {
			if err := h.close(dir, r); err != nil {
				h.log.Errorf("run %s: its record could not be written: %v", r.Name, err)
				continue
			}
		}
		if err := dir.Remove(r.Name); err != nil {
			h.log.Warnf("run %s: %v", r.Name, err)
		}
	}
}

// knows asks Slurm once, and only if a run's fate depends on it.
func (h *hook) knows() runs.Knows {
	ask := sync.OnceValues(func() ([]slurmctl.Job, error) {
		ctx, cancel := context.WithTimeout(context.Background(), h.cfg.Drain.Timeout.D())
		defer cancel()
		jobs, err := client(h.cfg, h.env).NodeJobs(ctx, h.name)
		if err != nil {
			h.log.Warnf("old runs are kept: %v", err)
		}
		return jobs, err
	})
	return func(job uint32) (known, sure bool) {
		jobs, err := ask()
		return slices.ContainsFunc(jobs, func(j slurmctl.Job) bool { return j.ID == job }), err == nil
	}
}

// close writes the record of a run that nobody closed. Without its job.json
// there is nothing to tell.
func (h *hook) close(dir runs.Dir, r runs.Run) error {
	boot := h.look.BootID
	job, err := dir.ReadJob(r.Name, boot)
	lost := errors.Is(err, runs.ErrOtherBoot)
	if err != nil && !lost {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, runs.ErrBroken) || errors.Is(err, runs.ErrVersion) {
			h.log.Warnf("run %s: dropped: %v", r.Name, err)
			return nil
		}
		return err
	}
	in := record.Input{
		Job: &job, Epilog: job.Job, BootID: boot, NodeLost: lost, Now: h.env.Now(), Version: cli.Version(),
		Catalog: func() xid.Catalogue {
			c, err := xid.Load(nil)
			if err != nil {
				h.log.Warnf("%v", err)
			}
			return c
		},
	}
	if sums, err := dir.ReadSums(r.Name, job.BootID); err == nil {
		in.Sums = &sums
	}
	placed, err := spool.Put(h.cfg.Paths.Spool, h.cfg.Paths.Fallback, record.Build(in))
	if err == nil {
		h.log.Infof("run %s: no epilog has closed it: record written to %s", r.Name, placed.Path)
	}
	return err
}
