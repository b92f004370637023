// Package slurmctl asks Slurm with its own commands: scontrol, sinfo, squeue and
// sacct. Few calls, each with a deadline; a hook uses them on the failure path
// only.
package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
)

// Client runs Slurm's commands by their configured paths; slurmd sets no PATH.
// A path that is empty, or leads nowhere, means that the command is not there.
type Client struct {
	Scontrol string
	Sinfo    string
	Squeue   string
	Sacct    string
	Slurmd   string        // for SlurmdG alone
	Conf     string        // SLURM_CONF for the commands; "" is Slurm's default
	Timeout  time.Duration // of one command; 0 is 2 s
}

// ErrNotInstalled is wrapped by the error of a command that is not there.
var ErrNotInstalled = errors.New("command not found")

const (
	defaultTimeout = 2 * time.Second
	maxOutput      = 16 << 20 // sinfo -N prints about 100 bytes a node and partition
	maxErrorText   = 300
	maxPrinted     = 1 << 20 // slurmd -G prints about 200 bytes a device, 1024 at most
)

// run executes one command without a shell and returns its standard output. A
// child of it that keeps the pipe open delays the answer by 0.2 s at most.
func (c Client) run(ctx context.Context, name, path string, args ...string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("%s: %w", name, ErrNotInstalled)
	}
	limit := c.Timeout
	if limit <= 0 {
		limit = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stdout, stderr := &bounded{left: maxOutput}, &bounded{left: 4 << 10}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = c.environ()
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 200 * time.Millisecond
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whoever still holds the pipe
		err = nil
	}
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: no answer: %w", name, ctx.Err())
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: %s: %w", name, path, ErrNotInstalled)
	case err != nil:
		text := slurm.Clean(stderr.String(), maxErrorText)
		if text == "" {
			text = slurm.Clean(stdout.String(), maxErrorText)
		}
		return "", &CommandError{Name: name, Text: text, Err: err}
	case stdout.cut:
		return "", fmt.Errorf("%s: answer is longer than %d bytes", name, maxOutput)
	}
	return stdout.String(), nil
}

// Version is the release of Slurm's commands here, which is slurmd's as well.
func (c Client) Version(ctx context.Context) (slurmconf.Version, error) {
	out, err := c.run(ctx, "scontrol --version", c.Scontrol, "--version")
	if err != nil {
		return slurmconf.Version{}, err
	}
	v, ok := slurmconf.ParseVersion(out)
	if !ok {
		return v, fmt.Errorf("scontrol --version: no release in %q", clip(out))
	}
	return v, nil
}

// CommandError is a command that ran and failed.
type CommandError struct {
	Name string
	Text string // what it said, cleaned
	Err  error
}

// Error is "name: why: what it said".
func (e *CommandError) Error() string {
	s := fmt.Sprintf("%s: %v", e.Name, e.Err)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Unwrap returns the exit status as an *exec.ExitError, or why it did not start.
func (e *CommandError) Unwrap() error { return e.Err }

// environ is all that the commands see. UTC makes the times in their output
// unambiguous.
func (c Client) environ() []string {
	env := []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C", "TZ=UTC0"}
	if c.Conf != "" {
		env = append(env, "SLURM_CONF="+c.Conf)
	}
	return env
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	strings.Builder
	left int
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.cut = b.cut || n < len(p)
	b.left -= n
	b.Builder.Write(p[:n])
	return len(p), nil
}
