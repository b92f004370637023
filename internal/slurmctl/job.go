package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Job is what Slurm knows of a job. Only fields that no user writes are asked
// for: a job name can look like any other field.
type Job struct {
	ID    uint32 // the job's own id, also of an array task
	Array string // "120_3" for a task, "" otherwise
	State string // RUNNING, COMPLETED, …
}

// ErrUnknownJob is wrapped when Slurm does not know the job.
var ErrUnknownJob = errors.New("job is not known to Slurm")

const squeueFormat = "--format=%A|%F|%K|%T"

// NodeJobs lists the jobs that slurmctld still has on a node, finished ones of
// the last minutes included.
func (c Client) NodeJobs(ctx context.Context, node string) ([]Job, error) {
	if err := checkNode(node); err != nil {
		return nil, err
	}
	out, err := c.run(ctx, "squeue", c.Squeue, "--noheader", "--all", "--states=all", "--nodelist="+node, squeueFormat)
	if err != nil {
		return nil, err
	}
	return parseJobs(out)
}

// isJobSpec says whether s is "4711" or "120_3": nothing else reaches a command.
func isJobSpec(s string) bool {
	id, task, array := strings.Cut(s, "_")
	return isNumber(id) && id[0] != '0' && (!array || isNumber(task))
}

// isNumber says whether s is one to ten decimal digits.
func isNumber(s string) bool {
	return s != "" && len(s) <= 10 && strings.Trim(s, "0123456789") == ""
}

// FindJob looks for a job by "4711" or, an array task, by "120_3": in
// slurmctld's memory first, then in the accounting where there is one.
func (c Client) FindJob(ctx context.Context, spec string) (Job, error) {
	if !isJobSpec(spec) {
		return Job{}, fmt.Errorf("%q is not a job id", clip(spec))
	}
	out, err := c.run(ctx, "squeue", c.Squeue, "--noheader", "--all", "--states=all", "--jobs="+spec, squeueFormat)
	if err == nil {
		jobs, perr := parseJobs(out)
		if perr != nil {
			return Job{}, perr
		}
		if j, ok := pickJob(jobs, spec); ok {
			return j, nil
		}
	} else if !saysUnknown(err) && !errors.Is(err, ErrNotInstalled) {
		return Job{}, err
	}
	j, aerr := c.findAccounted(ctx, spec)
	if errors.Is(aerr, ErrNotInstalled) {
		if errors.Is(err, ErrNotInstalled) {
			return Job{}, err // nobody could be asked
		}
		return Job{}, fmt.Errorf("%s: %w", spec, ErrUnknownJob)
	}
	return j, aerr
}

func (c Client) findAccounted(ctx context.Context, spec string) (Job, error) {
	out, err := c.run(ctx, "sacct", c.Sacct, "--noheader", "--allocations", "--parsable2", "--duplicates", "--jobs="+spec, "--format=JobIDRaw,JobID,State")
	if err != nil {
		if strings.Contains(err.Error(), "storage is disabled") {
			return Job{}, fmt.Errorf("%s: %w", spec, ErrUnknownJob)
		}
		return Job{}, err
	}
	var jobs []Job
	for _, line := range strings.Split(out, "\n") {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) < 3 {
			continue
		}
		id, err := strconv.ParseUint(f[0], 10, 32)
		if err != nil {
			continue // a part of a heterogeneous job ("4711+1")
		}
		state, _, _ := strings.Cut(f[2], " ") // "CANCELLED by 0"
		j := Job{ID: uint32(id), State: state}
		if strings.Contains(f[1], "_") {
			j.Array = f[1]
		}
		jobs = append(jobs, j)
	}
	if j, ok := pickJob(jobs, spec); ok {
		return j, nil
	}
	return Job{}, fmt.Errorf("%s: %w", spec, ErrUnknownJob)
}

// saysUnknown recognises squeue's way to say that a job is gone.
func saysUnknown(err error) bool {
	var e *CommandError
	return errors.As(err, &e) && strings.Contains(e.Text, "Invalid job id")
}

// pickJob takes the last that matches: sacct prints the runs of a requeued job
// in order.
func pickJob(jobs []Job, spec string) (Job, bool) {
	for i := len(jobs) - 1; i >= 0; i-- {
		j := jobs[i]
		if j.Array == spec || strconv.FormatUint(uint64(j.ID), 10) == spec {
			return j, true
		}
	}
	return Job{}, false
}

func parseJobs(out string) ([]Job, error) {
	var jobs []Job
	for _, line := range strings.Split(out, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 4 {
			return nil, fmt.Errorf("squeue: answer %q is not understood", clip(line))
		}
		id, err := strconv.ParseUint(f[0], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("squeue: answer %q is not understood", clip(line))
		}
		j := Job{ID: uint32(id), State: f[3]}
		if _, err := strconv.ParseUint(f[2], 10, 32); err == nil { // a task; "N/A" or "[1-3]" is not one
			j.Array = f[1] + "_" + f[2]
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
