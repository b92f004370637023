package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurmctl"
)

// jobID reads a job as people name it: 4711, or 120_3 for a task of an array. The
// result is the number under which records are kept. slurmd does not tell its
// scripts array ids, so a task's number is asked of Slurm.
func jobID(ctx context.Context, cfg config.Config, spec string) (uint32, error) {
	master, task, isTask := strings.Cut(spec, "_")
	id, err := strconv.ParseUint(master, 10, 32)
	if isTask && err == nil {
		_, err = strconv.ParseUint(task, 10, 32)
	}
	if err != nil || id == 0 {
		return 0, usage(fmt.Errorf("%q is not a job id", spec), "4711, or 120_3 for a task of an array")
	}
	if !isTask {
		return uint32(id), nil
	}
	s := cfg.Slurm
	slurm := slurmctl.Client{Scontrol: s.Scontrol, Sinfo: s.Sinfo, Squeue: s.Squeue, Sacct: s.Sacct, Conf: s.Conf}
	job, err := slurm.FindJob(ctx, spec)
	hint := "records are kept under the task's own number: sacct -X -j " + spec + " -o JobIDRaw, then gpu-accounting report NUMBER"
	switch {
	case errors.Is(err, slurmctl.ErrUnknownJob):
		return 0, &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("job %s is not known to Slurm (any more)", spec), Hint: hint}
	case err != nil:
		return 0, &cli.ExitError{Code: cli.Blind, Err: fmt.Errorf("job %s: the number of the array's task could not be asked of Slurm: %w", spec, err), Hint: hint}
	}
	return job.ID, nil
}

// missing says why there is no page: the job still runs here, was refused, is
// unknown, or the records could not be read.
func missing(env cli.Env, cfg config.Config, dirs []string, spec string, id uint32, failed error) error {
	name := spec
	if name != fmt.Sprint(id) {
		name = fmt.Sprintf("%s (%d)", spec, id)
	}
	if failed != nil {
		return &cli.ExitError{Code: cli.Blind, Err: fmt.Errorf("job %s: its records could not be read: %w", name, failed)}
	}
	// The state directory is root's on some sites; then nothing is known of runs.
	list, _ := runs.Dir(cfg.Paths.Run).List()
	for i := len(list) - 1; i >= 0; i-- {
		switch r := list[i]; {
		case r.Job != id:
		case r.Live():
			return failure("job %s is still running on this node: its record is written when it ends", name)
		case !r.Refused.IsZero():
			return failure("job %s was refused on this node before it started, so it has no record", name)
		}
	}
	err := fmt.Errorf("job %s: no record in %s", name, strings.Join(dirs, ", "))
	return &cli.ExitError{Code: cli.Failed, Err: err,
		Hint: "a record lies on each node where the job had GPUs, once it has ended; --dir reads other nodes' records"}
}

func failure(format string, args ...any) error {
	return &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf(format, args...)}
}
