package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/node"
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
			if err := h.finish(dir, r.Name); err != nil {
				h.log.Errorf("run %s: its record could not be written: %v", r.Name, err)
				continue
			}
		}
		if err := dir.Remove(r.Name); err != nil {
			h.log.Warnf("run %s: %v", r.Name, err)
		}
	}
	h.sweepCheckpoints(dir)
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

// finish writes the record of a run that nobody closed. Without its job.json
// there is nothing to tell.
func (h *hook) finish(dir runs.Dir, n runs.Name) error {
	job, err := dir.ReadJob(n, h.look.BootID)
	switch {
	case err == nil, errors.Is(err, runs.ErrOtherBoot):
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, runs.ErrBroken), errors.Is(err, runs.ErrVersion):
		h.log.Warnf("run %s: dropped: %v", n, err)
		return nil
	default:
		return err
	}
	var sums *runs.Sums
	if s, err := dir.ReadSums(n, job.BootID); err == nil {
		sums = &s
	}
	return h.put(job, sums)
}

// put writes the record of a run from what is left of it.
func (h *hook) put(job runs.Job, sums *runs.Sums) error {
	placed, err := spool.Put(h.cfg.Paths.Spool, h.cfg.Paths.Fallback, record.Build(record.Input{
		Job: &job, Epilog: job.Job, Sums: sums, BootID: h.look.BootID, NodeLost: job.BootID != h.look.BootID,
		Now: h.env.Now(), Version: cli.Version(), Catalog: h.catalogue,
	}))
	if err == nil {
		h.log.Infof("job %d: no epilog has closed it: record written to %s", job.Job.ID, placed.Path)
	}
	return err
}

func (h *hook) catalogue() xid.Catalogue {
	c, err := node.Catalogue(h.cfg.Paths.XID)
	if err != nil {
		h.log.Warnf("the XID catalogue: %v", err)
	}
	return c
}

// sweepCheckpoints deletes the checkpoints that nobody needs any more, and
// finishes the runs of another boot: the node went down under them, and the
// checkpoint is all that is left.
func (h *hook) sweepCheckpoints(dir runs.Dir) {
	points := runs.CheckpointsIn(h.cfg.Paths.Spool)
	names, err := points.List()
	if err != nil {
		h.log.Warnf("%v", err)
	}
	for _, n := range names {
		c, err := points.Read(n)
		switch {
		case errors.Is(err, runs.ErrBroken), errors.Is(err, runs.ErrVersion):
			h.log.Warnf("dropped: %v", err)
		case err != nil:
			h.log.Warnf("%v", err)
			continue
		case c.Job.BootID == h.look.BootID:
			if _, err := os.Stat(filepath.Join(dir.Path(n), "done")); err != nil && exists(dir.Path(n)) {
				continue // it runs
			}
		case h.look.BootID == "":
			continue
		case !h.recorded(n, c):
			if err := h.put(c.Job, &c.Sums); err != nil {
				h.log.Errorf("run %s: its record could not be written: %v", n, err)
				continue
			}
		}
		if err := points.Remove(n); err != nil {
			h.log.Warnf("%v", err)
		}
	}
}

// recorded says that a run has its record already: its epilog was quicker than
// the node's end.
func (h *hook) recorded(n runs.Name, c runs.Checkpoint) bool {
	file := spool.Name{Job: n.Job, Restart: n.Restart, Node: c.Job.Job.NodeName}.String() + ".json"
	return exists(filepath.Join(spool.Records(h.cfg.Paths.Spool), file)) || exists(filepath.Join(h.cfg.Paths.Fallback, file))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
