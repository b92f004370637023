package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"gpuhooks/internal/gpu"
)

// Process is one process of the machine. In a simulated node's root there are
// none: read them from NewFS("/").
type Process struct {
	PID    int
	Parent int    // 0 for a process without one in this namespace
	Comm   string // at most 15 bytes, chosen by the process itself
	State  byte   // R running, S sleeping, D in an uninterruptible call, Z dead but not reaped, …
	Start  uint64 // clock ticks since boot; with PID it names the process for as long as the boot lasts
	UID    int    // owner (effective)
	Job    string // Slurm job of its cgroup: a number, or a SLUID; "" for none
}

// ProcessStat reads what /proc/PID/stat tells of a process: all but UID and Job.
// It is fs.ErrNotExist once the process is gone.
func (f FS) ProcessStat(pid int) (Process, error) {
	p := Process{PID: pid}
	dir := "proc/" + strconv.Itoa(pid)
	b, err := f.read(smallFile, dir, "stat")
	if err != nil {
		return p, gone(err)
	}
	if err := parseProcessStat(string(b), &p); err != nil {
		return p, fmt.Errorf("%s: %w", f.Path(dir, "stat"), err)
	}
	return p, nil
}

// Process reads one process. It is fs.ErrNotExist once it is gone.
func (f FS) Process(pid int) (Process, error) {
	p, err := f.ProcessStat(pid)
	if err != nil {
		return p, err
	}
	dir := "proc/" + strconv.Itoa(pid)
	st, err := os.Stat(f.Path(dir))
	if err != nil {
		return p, err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		p.UID = int(sys.Uid)
	}
	b, err := f.read(largeFile, dir, "cgroup")
	if err != nil {
		return p, gone(err)
	}
	p.Job = JobOfCgroup(string(b))
	return p, nil
}

// GPUProcess is the process as gpu data knows it.
func (p Process) GPUProcess() gpu.Process {
	return gpu.Process{PID: p.PID, Name: p.Comm, UID: gpu.Some(p.UID), Start: gpu.Some(p.Start), Job: p.Job}
}

// gone makes ESRCH, the answer for a process that ends while it is read,
// the same as a missing file.
func gone(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%w: %w", os.ErrNotExist, err)
	}
	return err
}

// parseProcessStat reads /proc/PID/stat (man proc_pid_stat). The name stands in
// parentheses and may hold any character, so the last ")" ends it.
func parseProcessStat(s string, p *Process) error {
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 0 || end < open {
		return fmt.Errorf("malformed stat %q", s)
	}
	rest := strings.Fields(s[end+1:])
	const state, parent, start = 0, 1, 19 // fields 3, 4 and 22
	if len(rest) <= start || len(rest[state]) != 1 {
		return fmt.Errorf("malformed stat %q", s)
	}
	ticks, err := strconv.ParseUint(rest[start], 10, 64)
	if err != nil {
		return fmt.Errorf("start time: %w", err)
	}
	if p.Parent, err = strconv.Atoi(rest[parent]); err != nil {
		return fmt.Errorf("parent: %w", err)
	}
	p.Comm = printable(s[open+1 : end])
	p.State = rest[state][0]
	p.Start = ticks
	return nil
}

// JobOfCgroup finds the Slurm job in the text of /proc/PID/cgroup. Version 1
// has /slurm/uid_N/job_M/step_S, version 2 …slurmstepd.scope/job_M/step_S; a
// SLUID may stand for M. "" for none.
func JobOfCgroup(s string) string {
	for line := range strings.Lines(s) {
		parts := strings.Split(strings.TrimSpace(line), "/")
		for i, part := range parts {
			job, ok := strings.CutPrefix(part, "job_")
			if !ok || job == "" || strings.Trim(job, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
				continue
			}
			// A name alone proves nothing: anybody may name a cgroup of his own so.
			if i > 0 && (strings.HasPrefix(parts[i-1], "uid_") || strings.Contains(parts[i-1], "slurm")) {
				return job
			}
		}
	}
	return ""
}

// printable replaces what a terminal could take for a command.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\uFFFD' {
			return '?'
		}
		return r
	}, s)
}
