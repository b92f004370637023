package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
)

// slurmdGrace is how long slurmd -G is waited for after KILL.
const slurmdGrace = 300 * time.Millisecond

// StuckError is a command that did not die of KILL: it sleeps in the kernel.
type StuckError struct {
	Name string
	PID  int
}

// Error is "name: process N hangs in the kernel".
func (e *StuckError) Error() string {
	return fmt.Sprintf("%s: process %d hangs in the kernel", e.Name, e.PID)
}

// SlurmdG asks slurmd's program which GPUs it detects on this node, in the order
// in which SLURM_JOB_GPUS counts. It loads the driver's library, so that it may
// hang: no prolog may ask. work is a directory that is made for the question and
// removed; conf is the slurm.conf that slurmd works with.
//
// slurmd -G only prints, but on its way it opens the daemon's log and rewrites
// the machine's topology in the daemon's spool directory (22.05.8, strace). It is
// therefore given a slurm.conf of its own in work, which includes the real one and
// leads those elsewhere.
func (c Client) SlurmdG(ctx context.Context, conf, node, work string) ([]slurmconf.Device, error) {
	const name = "slurmd -G"
	if c.Slurmd == "" {
		return nil, fmt.Errorf("%s: %w", name, ErrNotInstalled)
	}
	if st, err := os.Stat(c.Slurmd); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %s: %w", name, c.Slurmd, ErrNotInstalled)
	}
	defer os.RemoveAll(work)
	own, err := apart(conf, work)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	args := []string{"-G", "-f", own}
	if host, err := os.Hostname(); err != nil || node != "" && !strings.EqualFold(node, strings.SplitN(host, ".", 2)[0]) {
		args = append(args, "-N", node)
	}
	c.Conf = own
	text, err := c.runApart(ctx, name, c.Slurmd, args...)
	if err != nil {
		return nil, err
	}
	return slurmconf.ParseSlurmdG([]byte(text))
}

// apart makes a configuration directory like that of conf, with the daemon's own
// files elsewhere: a later setting replaces an earlier one.
func apart(conf, work string) (string, error) {
	if strings.ContainsAny(conf+work, " \t\n#\"\\") {
		return "", errors.New("a path with blanks or marks cannot be named in slurm.conf")
	}
	if err := os.RemoveAll(work); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(work, "spool"), 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(filepath.Dir(conf))
	if err != nil {
		return "", err
	}
	own := filepath.Join(work, "slurm.conf")
	for _, e := range entries { // gres.conf, cgroup.conf, what they include
		if e.Name() == "slurm.conf" || e.Name() == "spool" {
			continue
		}
		if err := os.Symlink(filepath.Join(filepath.Dir(conf), e.Name()), filepath.Join(work, e.Name())); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("Include %s\nSlurmdSpoolDir=%s\nSlurmdPidFile=%s\nSlurmdLogFile=/dev/null\n",
		conf, filepath.Join(work, "spool"), filepath.Join(work, "spool", "pid"))
	return own, os.WriteFile(own, []byte(text), 0o600)
}

// runApart executes a command in a session of its own and returns all that it
// printed. One that will not die is left behind.
func (c Client) runApart(ctx context.Context, name, path string, args ...string) (string, error) {
	limit := c.Timeout
	if limit <= 0 {
		limit = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &bounded{left: maxPrinted}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = c.environ(), "/"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = 200 * time.Millisecond
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // gone is as good
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if errors.Is(err, exec.ErrWaitDelay) {
			kill() // whoever still holds the pipe
		} else if err != nil {
			return "", &CommandError{Name: name, Text: slurm.Clean(out.String(), maxErrorText), Err: err}
		}
	case <-ctx.Done():
		kill()
		select {
		case <-ended:
			return "", fmt.Errorf("%s: no answer: %w", name, ctx.Err())
		case <-time.After(slurmdGrace + cmd.WaitDelay):
			return "", &StuckError{Name: name, PID: cmd.Process.Pid}
		}
	}
	if out.cut {
		return "", fmt.Errorf("%s: answer is longer than %d bytes", name, maxPrinted)
	}
	return out.String(), nil
}
