package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/config"
)

// SamplerState says what StartSampler found or did.
type SamplerState string

// The states.
const (
	SamplerRuns    SamplerState = "runs"    // it holds its lock and shows a heartbeat
	SamplerStarted SamplerState = "started" // a new one was started
	SamplerOff     SamplerState = "off"     // switched off
	SamplerAsked   SamplerState = "asked"   // systemd was asked to start one
	SamplerStuck   SamplerState = "stuck"   // an old one does not die
	SamplerFailed  SamplerState = "failed"
)

// maxSamplerLog bounds what sampler.log keeps from one sampler to the next.
const maxSamplerLog = 256 << 10

// StartSampler makes sure that a sampler runs. A prolog calls it after its run's
// directory is in place: a sampler that leaves looks once more after it has
// released its lock, so that either it sees the run or we see the lock free.
// A holder of the lock without a heartbeat is killed first.
func StartSampler(c config.Config, now time.Time) (SamplerState, error) {
	if !c.Sampler.Enabled {
		return SamplerOff, nil
	}
	run := c.Paths.Run
	free, err := samplerLockFree(run)
	if err != nil {
		return SamplerFailed, fmt.Errorf("sampler: %w", err)
	}
	if !free {
		h, silent := silentHolder(run, c.Sampler.Tick.D(), now)
		if !silent {
			return SamplerRuns, nil
		}
		if err := killSampler(run, h, now); err != nil {
			return SamplerStuck, err
		}
	}
	if c.Sampler.Start == "systemd" {
		// The file outlives a sampler that is just leaving, so that systemd, which
		// looks again when the service has ended, cannot miss the request.
		if err := os.WriteFile(filepath.Join(run, SamplerWanted), nil, 0o644); err != nil {
			return SamplerFailed, fmt.Errorf("sampler: %w", err)
		}
		return SamplerAsked, nil
	}
	if a, ok := living(run); ok {
		return SamplerStuck, errors.New(a.String())
	}
	if err := startSampler(c); err != nil {
		return SamplerFailed, fmt.Errorf("sampler: %w", err)
	}
	return SamplerStarted, nil
}

// SamplerHolds says whether a sampler holds its lock.
func SamplerHolds(run string) bool {
	free, err := samplerLockFree(run)
	return err == nil && !free
}

// samplerLockFree says whether no sampler holds the lock. It asks for a shared
// lock, so that those who ask do not hinder each other, and gives it back at
// once; a sampler that starts at that very moment and cannot lock is replaced by
// the one that the asker starts.
func samplerLockFree(run string) (bool, error) {
	if err := os.MkdirAll(run, 0o755); err != nil {
		return false, err
	}
	f, err := os.OpenFile(filepath.Join(run, SamplerLock), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// silentHolder returns the heartbeat of a lock holder that has not shown one for
// three ticks. A heartbeat of a process that is gone is an earlier sampler's: the
// holder has only just begun.
func silentHolder(run string, tick time.Duration, now time.Time) (Heartbeat, bool) {
	h, err := ReadHeartbeat(run)
	if err != nil {
		return h, false
	}
	limit := max(3*tick, 3*time.Second) + 2*time.Second
	boot, err := machine.BootID()
	return h, err == nil && h.BootID == boot && now.Sub(h.Time) > limit && lives(h.PID, h.StartTicks)
}

// killSampler ends a silent sampler: TERM, a grace, KILL. If it survives it is
// noted like a stuck probe.
func killSampler(run string, h Heartbeat, now time.Time) error {
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, moment}} {
		// Its number is its own: it lived just now with the noted start time.
		if err := syscall.Kill(h.PID, step.sig); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		for end := time.Now().Add(step.wait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if !lives(h.PID, h.StartTicks) {
				return nil
			}
		}
	}
	a := abandoned{PID: h.PID, StartTicks: h.StartTicks, BootID: h.BootID, Time: now.UTC(), What: "sampler"}
	return errors.Join(errors.New(a.String()), note(run, a))
}

// startSampler starts one in its own session with an empty environment; it
// outlives us and slurmd's kill of our process group.
func startSampler(c config.Config) error {
	if err := trusted(c.Paths.Probe); err != nil {
		return err
	}
	log, err := samplerLog(c.Paths.Run)
	if err != nil {
		return err
	}
	defer log.Close()
	closeOnExec()
	args := []string{
		"sample", "--run", c.Paths.Run, "--root", c.Paths.Root, "--spool", c.Paths.Spool,
		"--tick", c.Sampler.Tick.D().String(), "--series", strconv.Itoa(c.Sampler.Series),
	}
	if c.Paths.NVML != "" {
		args = append(args, "--nvml", c.Paths.NVML)
	}
	if j := journal(c.Paths); j != "" {
		args = append(args, "--journal", j)
	}
	cmd := exec.Command(c.Paths.Probe, args...)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	// It is not waited for: it is init's when we are gone.
	return cmd.Process.Release()
}

// samplerLog opens the sampler's stderr, begun anew when it has grown.
func samplerLog(run string) (*os.File, error) {
	path := filepath.Join(run, SamplerLog)
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND | syscall.O_NOFOLLOW
	if st, err := os.Lstat(path); err == nil && st.Size() > maxSamplerLog {
		flags |= os.O_TRUNC
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, flags, 0o644)
}
