package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a daemon of the cluster. The start time tells it from a later
// process of the same number.
type process struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Start string `json:"start"` // field 22 of /proc/PID/stat, in clock ticks
}

// daemon starts a program in its own session with its output in logs/NAME.out.
func (l *Lab) daemon(name string, env []string, argv ...string) error {
	out, err := os.Create(filepath.Join(l.Dir, "logs", name+".out"))
	if err != nil {
		return err
	}
	defer out.Close()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
	cmd.Dir = l.Dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	l.procs = append(l.procs, process{name, cmd.Process.Pid, startTime(cmd.Process.Pid)})
	go cmd.Wait() // so that no zombie stays where the cluster does not
	return nil
}

// startTime is the start of a process since boot, empty if it is gone.
func startTime(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := bytes.Cut(b, []byte(") ")) // the name may hold spaces
	f := bytes.Fields(rest)
	if len(f) < 20 || f[0][0] == 'Z' {
		return ""
	}
	return string(f[19])
}

func (p process) alive() bool { return p.Start != "" && startTime(p.PID) == p.Start }

func (l *Lab) process(name string) (process, bool) {
	for i := len(l.procs) - 1; i >= 0; i-- {
		if l.procs[i].Name == name {
			return l.procs[i], true
		}
	}
	return process{}, false
}

// waitUntil asks ready every 50 ms, and ends early when the daemon has died.
func (l *Lab) waitUntil(ctx context.Context, daemon string, limit time.Duration, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, _ := l.process(daemon)
	for {
		if ready() {
			return nil
		}
		if !p.alive() {
			return fmt.Errorf("%s died: %s", daemon, l.lastLines(daemon))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s not ready after %s: %s", daemon, limit, l.lastLines(daemon))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// lastLines is the end of a daemon's log and output, for error messages.
func (l *Lab) lastLines(daemon string) string {
	var all []string
	for _, ext := range []string{".log", ".out"} {
		b, _ := os.ReadFile(filepath.Join(l.Dir, "logs", daemon+ext))
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		all = append(all, lines[max(0, len(lines)-5):]...)
	}
	return strings.Join(all, "\n")
}

// kill ends the daemons in the reverse order of their start, then whatever
// still has to do with the cluster's directory: steps, samplers, job programs.
func (l *Lab) kill() error {
	for i := len(l.procs) - 1; i >= 0; i-- {
		p := l.procs[i]
		if !p.alive() {
			continue
		}
		syscall.Kill(p.PID, syscall.SIGTERM)
		for end := time.Now().Add(3 * time.Second); p.alive() && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		if p.alive() {
			syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	for range 20 {
		left := l.related()
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("lab: processes that do not die: " + fmt.Sprint(l.related()))
}

// related lists the processes that name the cluster's directory in their
// command line, environment or memory maps, or work in it. The directory's
// name is unique, so that no other process can be meant.
func (l *Lab) related() []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() || pid == os.Getppid() || startTime(pid) == "" {
			continue
		}
		if l.relatedTo(d) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (l *Lab) relatedTo(proc string) bool {
	mine := []byte(l.Dir + "/")
	if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err == nil && strings.HasPrefix(cwd+"/", string(mine)) {
		return true
	}
	for _, name := range []string{"cmdline", "environ", "maps"} {
		if b, err := os.ReadFile(filepath.Join(proc, name)); err == nil && bytes.Contains(b, mine) {
			return true
		}
	}
	return false
}
