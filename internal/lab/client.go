package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// callLimit bounds every call of a Slurm command.
const callLimit = 15 * time.Second

// clientEnv is the environment in which Slurm's programs talk to this cluster.
func (l *Lab) clientEnv() []string {
	return []string{"SLURM_CONF=" + l.SlurmConf(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
}

// slurm runs a command of Slurm against this cluster and returns its stdout.
func (l *Lab) slurm(ctx context.Context, argv ...string) (string, error) {
	return l.slurmInput(ctx, "", argv...)
}

func (l *Lab) slurmInput(ctx context.Context, input string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = l.clientEnv()
	cmd.Dir = filepath.Join(l.Dir, "jobs")
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(out.String()+errs.String()))
	}
	return out.String(), nil
}

// Slurm runs a command of Slurm (scontrol, squeue, sinfo, scancel) against
// this cluster, within 15 s, and returns what it wrote to stdout.
func (l *Lab) Slurm(ctx context.Context, argv ...string) (string, error) {
	return l.slurm(ctx, argv...)
}

func (l *Lab) version(ctx context.Context) string {
	out, _ := l.slurm(ctx, "scontrol", "--version")
	return strings.TrimSpace(strings.TrimPrefix(out, "slurm-wlm"))
}

// Submit sends a batch script (without its #! line) with further arguments of
// sbatch, and returns the job's number. Its output is OutputFile.
func (l *Lab) Submit(ctx context.Context, script string, args ...string) (int, error) {
	argv := append([]string{"sbatch", "--parsable", "--output=%j.out"}, args...)
	out, err := l.slurmInput(ctx, "#!/bin/sh\n"+script+"\n", argv...)
	if err != nil {
		return 0, err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";")
	return strconv.Atoi(id)
}

// OutputFile is where a job's script writes.
func (l *Lab) OutputFile(id int) string {
	return filepath.Join(l.Dir, "jobs", strconv.Itoa(id)+".out")
}

// Job is what slurmctld says about a job.
type Job struct {
	ID        int
	ArrayJob  int    // 0 unless it is a task of an array
	ArrayTask int    // only with ArrayJob
	State     string // PENDING, RUNNING, COMPLETING, COMPLETED, FAILED, ...
	Reason    string // why it is in that state
	Node      string // the node or nodes of its last run
	Restarts  int
	ExitCode  string // "status:signal"
}

// Job asks for one job. An array is asked for by "ID_TASK" with JobOf.
func (l *Lab) Job(ctx context.Context, id int) (Job, error) {
	return l.JobOf(ctx, strconv.Itoa(id))
}

// JobOf asks for one job by any spelling that scontrol knows.
func (l *Lab) JobOf(ctx context.Context, id string) (Job, error) {
	out, err := l.slurm(ctx, "scontrol", "-o", "show", "job", id)
	if err != nil {
		return Job{}, err
	}
	line, _, _ := strings.Cut(out, "\n")
	return parseJob(line)
}

func parseJob(line string) (Job, error) {
	f := fields(line)
	j := Job{State: f["JobState"], Reason: f["Reason"], Node: f["NodeList"], ExitCode: f["ExitCode"]}
	if j.Node == "(null)" {
		j.Node = ""
	}
	var err error
	if j.ID, err = strconv.Atoi(f["JobId"]); err != nil {
		return Job{}, fmt.Errorf("not a job: %q", line)
	}
	if j.Restarts, err = strconv.Atoi(f["Restarts"]); err != nil {
		return Job{}, fmt.Errorf("not a job: %q", line)
	}
	j.ArrayJob, _ = strconv.Atoi(f["ArrayJobId"])
	j.ArrayTask, _ = strconv.Atoi(f["ArrayTaskId"])
	return j, nil
}

// JobGPUs lists the indexes of a running job's GPUs in Slurm's list of the node,
// which is NVML's order in this cluster.
func (l *Lab) JobGPUs(ctx context.Context, id int) ([]int, error) {
	out, err := l.slurm(ctx, "scontrol", "-o", "-d", "show", "job", strconv.Itoa(id))
	if err != nil {
		return nil, err
	}
	return parseGPUs(out)
}

// parseGPUs reads "GRES=gpu:h100:3(IDX:0-1,5)".
func parseGPUs(line string) ([]int, error) {
	_, rest, ok := strings.Cut(line, "(IDX:")
	list, _, closed := strings.Cut(rest, ")")
	if !ok || !closed || list == "" {
		return nil, errors.New("no (IDX:…) in the job's GRES")
	}
	var all []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("GRES index %q: %w", list, err)
		}
		for i := a; i <= b; i++ {
			all = append(all, i)
		}
	}
	return all, nil
}

// NodeState is what slurmctld says about a node.
type NodeState struct {
	State  string // IDLE, MIXED, ALLOCATED with flags: IDLE+DRAIN
	Reason string // without the author and time that scontrol appends
}

// Drained says whether new jobs are kept away.
func (s NodeState) Drained() bool { return strings.Contains(s.State, "DRAIN") }

// NodeState asks for one node.
func (l *Lab) NodeState(ctx context.Context, name string) (NodeState, error) {
	out, err := l.slurm(ctx, "scontrol", "-o", "show", "node", name)
	if err != nil {
		return NodeState{}, err
	}
	return parseNode(out), nil
}

func parseNode(line string) NodeState {
	s := NodeState{State: fields(line)["State"]}
	if _, reason, ok := strings.Cut(line, " Reason="); ok {
		reason, _, _ = strings.Cut(reason, "\n")
		if i := strings.LastIndex(reason, " ["); i >= 0 { // "[root@2026-11-30T18:00:00]"
			reason = reason[:i]
		}
		s.Reason = strings.TrimSpace(reason)
	}
	return s
}

// fields splits a line of `scontrol -o`. Values with spaces are cut; the lab
// reads none of them this way.
func fields(line string) map[string]string {
	m := map[string]string{}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(w, "="); ok {
			if _, twice := m[k]; !twice {
				m[k] = v
			}
		}
	}
	return m
}

// WaitJob waits until the job is in one of the states. A COMPLETED job's
// epilog has ended on every node; before it is COMPLETING.
func (l *Lab) WaitJob(ctx context.Context, id int, limit time.Duration, states ...string) (Job, error) {
	return l.WaitJobUntil(ctx, id, limit, strings.Join(states, " or "), func(j Job) bool {
		return slices.Contains(states, j.State)
	})
}

// WaitJobUntil waits until ok; want names the wish in the error.
func (l *Lab) WaitJobUntil(ctx context.Context, id int, limit time.Duration, want string, ok func(Job) bool) (Job, error) {
	var last Job
	err := poll(ctx, limit, func() (bool, error) {
		j, err := l.Job(ctx, id)
		last = j
		return err == nil && ok(j), err
	})
	if err != nil {
		return last, fmt.Errorf("job %d is %s (%s) on %q after %s, wanted %s: %w", id, last.State, last.Reason, last.Node, limit, want, err)
	}
	return last, nil
}

// WaitTask waits until a task of an array has a number of its own: Slurm gives
// it one when it starts, and shows the array before.
func (l *Lab) WaitTask(ctx context.Context, array, task int, limit time.Duration) (Job, error) {
	var last Job
	err := poll(ctx, limit, func() (bool, error) {
		j, err := l.JobOf(ctx, fmt.Sprintf("%d_%d", array, task))
		last = j
		return err == nil && j.ArrayTask == task && j.State != "PENDING", err
	})
	if err != nil {
		return last, fmt.Errorf("task %d_%d is %s (%s): %w", array, task, last.State, last.Reason, err)
	}
	return last, nil
}

// WaitNode waits until a node's state is one of those given, flags included.
func (l *Lab) WaitNode(ctx context.Context, name string, limit time.Duration, states ...string) (NodeState, error) {
	var last NodeState
	err := poll(ctx, limit, func() (bool, error) {
		s, err := l.NodeState(ctx, name)
		last = s
		return err == nil && slices.Contains(states, s.State), err
	})
	if err != nil {
		return last, fmt.Errorf("node %s is %s (%s) after %s, wanted %s: %w", name, last.State, last.Reason, limit, strings.Join(states, " or "), err)
	}
	return last, nil
}

// Resume takes a drained node back into service.
func (l *Lab) Resume(ctx context.Context, name string) error {
	_, err := l.slurm(ctx, "scontrol", "update", "nodename="+name, "state=resume")
	return err
}

// Cancel ends a job.
func (l *Lab) Cancel(ctx context.Context, id int) error {
	_, err := l.slurm(ctx, "scancel", strconv.Itoa(id))
	return err
}

// poll asks until the answer is yes. A failed question is asked again: a busy
// controller may not answer one of them.
func poll(ctx context.Context, limit time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		ok, err := ask()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(150 * time.Millisecond):
		}
	}
}

// ReadFile returns a file's text, empty if there is none: for logs that may
// not have been written yet.
func ReadFile(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}
