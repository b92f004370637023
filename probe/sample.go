//go:build cgo

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/host"
	"gpuhooks/internal/runs"
)

// sampleOptions are the flags of `gpu-probe sample`.
type sampleOptions struct {
	run, root, nvml, spool string
	journal                string
	tick                   time.Duration
	series                 int
}

func sampleFlags(args []string) (sampleOptions, error) {
	var o sampleOptions
	f := newFlags("sample")
	f.StringVar(&o.run, "run", "/run/gpuhooks", "")
	f.StringVar(&o.root, "root", "/", "")
	f.StringVar(&o.nvml, "nvml", "", "")
	f.StringVar(&o.journal, "journal", "", "")
	f.StringVar(&o.spool, "spool", "/var/spool/gpuhooks", "")
	f.DurationVar(&o.tick, "tick", 5*time.Second, "")
	f.IntVar(&o.series, "series", 240, "")
	if err := parse(f, args); err != nil {
		return o, err
	}
	if o.tick < 100*time.Millisecond || o.tick > 10*time.Minute {
		return o, usageError{fmt.Errorf("--tick %v: must lie between 100ms and 10m", o.tick)}
	}
	if o.series < 0 || o.series > 10000 {
		return o, usageError{fmt.Errorf("--series %d: must lie between 0 and 10000", o.series)}
	}
	return o, nil
}

// sample is the node's sampler: it stays while there are live runs. Only one
// runs at a time; a second one leaves at once.
//
// A prolog renames its run in and then starts a sampler unless the lock is
// held. So the last thing a leaving sampler does, after it has let go of the
// lock, is to look once more: a run that came in between is never left alone.
func sample(args []string, stderr *os.File) error {
	o, err := sampleFlags(args)
	if err != nil {
		return err
	}
	// What is kept is small, and so is the work: threads cost more than they save.
	debug.SetGCPercent(50)
	runtime.GOMAXPROCS(1)
	beCalm()
	leaveCgroup()
	if err := os.MkdirAll(filepath.Join(o.run, "runs"), 0o755); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	for {
		lock, err := takeLock(filepath.Join(o.run, driver.SamplerLock))
		if errors.Is(err, errHeld) {
			return nil // somebody samples already
		}
		if err != nil {
			return err
		}
		why, err := sampleUntilIdle(o, stop, stderr)
		// Closing the descriptor lets go of the lock.
		_ = lock.Close()
		if err != nil || why == leaveReleased || why == leaveStopped {
			return err
		}
		if why == leaveReload {
			return restart()
		}
		if live, err := anythingToSample(runs.Dir(o.run), host.NewFS(o.root)); err != nil || !live {
			return err
		}
	}
}

// beCalm lets the threads' timers be late by a millisecond. Go's runtime has one
// that looks after the others every 20 µs while they work: up to a tenth of what a
// tick takes. Who may not set it has a sampler that takes more.
func beCalm() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		_ = os.WriteFile(filepath.Join("/proc", t.Name(), "timerslack_ns"), []byte("1000000"), 0)
	}
}

// sampleUntilIdle holds the lock: it samples until nothing is left to do.
func sampleUntilIdle(o sampleOptions, stop <-chan os.Signal, stderr *os.File) (leave, error) {
	s, err := newSampler(o, stderr)
	if err != nil {
		return leaveIdle, err
	}
	defer s.close()
	return s.loop(stop)
}

// anythingToSample says whether there is a run that a sampler would take.
func anythingToSample(dir runs.Dir, fs host.FS) (bool, error) {
	if released(dir) {
		return false, nil
	}
	boot, err := fs.BootID()
	if err != nil {
		return false, err
	}
	list, err := dir.List()
	if err != nil {
		return false, err
	}
	for _, r := range list {
		if wanted(dir, r, boot) {
			return true, nil
		}
	}
	return false, nil
}

// wanted says that a run is to be sampled: it is live, of this boot, and its
// epilog has not asked for its end.
func wanted(dir runs.Dir, r runs.Run, boot string) bool {
	if !r.Live() || !r.End.IsZero() {
		return false
	}
	_, err := dir.ReadJob(r.Name, boot)
	return err == nil
}

var errHeld = errors.New("the lock is held")

// takeLock takes the sampler's lock. A prolog that looks whether it is held
// holds it for a moment itself, so this tries for a fifth of a second.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for range 10 {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errHeld
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// restart begins this program anew: after a reload of the driver the library
// that is mapped is the old one, and there can be only one in a process.
func restart() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(exe, os.Args, os.Environ())
}

// releaseHolds is how long a release request keeps samplers away, should
// whoever made it not take it back.
const releaseHolds = 10 * time.Minute

// released says that somebody asks for the driver: MIG changes and resets need
// every client gone.
func released(dir runs.Dir) bool {
	st, err := os.Lstat(filepath.Join(string(dir), driver.ReleaseRequest))
	return err == nil && time.Since(st.ModTime()) < releaseHolds
}
