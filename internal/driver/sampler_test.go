package driver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/config"
)

// samplerConfig makes this test binary the sampler, behaving in the given way.
func samplerConfig(t *testing.T, how string) config.Config {
	t.Helper()
	p := fake(t, how)
	c := config.Default()
	c.Paths.Probe, c.Paths.Root, c.Paths.NVML, c.Paths.Run = p.Path, p.Root, p.NVML, p.Run
	t.Cleanup(func() {
		if h, err := ReadHeartbeat(p.Run); err == nil && lives(h.PID, h.StartTicks) {
			syscall.Kill(h.PID, syscall.SIGKILL)
		}
	})
	return c
}

// heartbeat waits for the sampler's first heartbeat, other than that of not.
func heartbeat(t *testing.T, c config.Config, not int) Heartbeat {
	t.Helper()
	for range 500 {
		if h, err := ReadHeartbeat(c.Paths.Run); err == nil && h.PID != not {
			return h
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no sampler came up")
	return Heartbeat{}
}

func start1(t *testing.T, c config.Config, now time.Time) SamplerState {
	t.Helper()
	began := time.Now()
	s, err := StartSampler(c, now)
	if (err != nil) != (s == SamplerStuck || s == SamplerFailed) {
		t.Errorf("%s: %v", s, err)
	}
	if took := time.Since(began); took > 600*time.Millisecond {
		t.Errorf("%s took %s", s, took)
	}
	return s
}

func TestStartSampler(t *testing.T) {
	c := samplerConfig(t, "")
	if s := start1(t, c, time.Now()); s != SamplerStarted {
		t.Fatal(s)
	}
	h := heartbeat(t, c, 0)
	if sid, err := unix.Getsid(h.PID); err != nil || sid != h.PID {
		t.Errorf("its session is %d, %v", sid, err)
	}
	if s := start1(t, c, time.Now()); s != SamplerRuns {
		t.Errorf("a second start: %s", s)
	}
	// A sampler that shows no heartbeat any more is replaced.
	if s := start1(t, c, time.Now().Add(time.Minute)); s != SamplerStarted {
		t.Errorf("a silent one: %s", s)
	}
	if lives(h.PID, h.StartTicks) {
		t.Error("the silent one lives")
	}
	if h2 := heartbeat(t, c, h.PID); h2.PID == h.PID {
		t.Error("no new one came up")
	}
}

// Prologs that come together start one sampler between them.
func TestStartSamplerTogether(t *testing.T) {
	c := samplerConfig(t, "")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if s, err := StartSampler(c, time.Now()); s != SamplerStarted && s != SamplerRuns {
				t.Errorf("%s: %v", s, err)
			}
		})
	}
	wg.Wait()
	heartbeat(t, c, 0)
	time.Sleep(200 * time.Millisecond)
	if s := start1(t, c, time.Now()); s != SamplerRuns {
		t.Error(s)
	}
}

func TestSamplerThatIgnoresTERM(t *testing.T) {
	c := samplerConfig(t, "ignores TERM")
	start1(t, c, time.Now())
	h := heartbeat(t, c, 0)
	if s := start1(t, c, time.Now().Add(time.Minute)); s != SamplerStarted || lives(h.PID, h.StartTicks) {
		t.Errorf("%s, lives %v", s, lives(h.PID, h.StartTicks))
	}
	heartbeat(t, c, h.PID)
}

// A sampler that survives KILL is a stuck probe: nothing new is started.
func TestStuckSampler(t *testing.T) {
	dir := freezer(t)
	c := samplerConfig(t, "frozen")
	c.Paths.Root = dir
	start1(t, c, time.Now())
	heartbeat(t, c, 0)
	time.Sleep(50 * time.Millisecond) // it freezes after its heartbeat
	if s := start1(t, c, time.Now().Add(time.Minute)); s != SamplerStuck {
		t.Errorf("a sampler in state D: %s", s)
	}
	if _, ok := living(c.Paths.Run); !ok {
		t.Error("it is not noted")
	}
}

// A heartbeat of a process that is gone says nothing about the holder.
func TestOldHeartbeat(t *testing.T) {
	c := samplerConfig(t, "")
	boot, err := machine.BootID()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(c.Paths.Run, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(c.Paths.Run, SamplerLock))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Heartbeat{nil, {PID: 1 << 22, StartTicks: 1, BootID: boot}, {PID: os.Getpid(), StartTicks: 1, BootID: boot}, {PID: os.Getpid(), BootID: "another"}} {
		if h != nil {
			b, _ := json.Marshal(h)
			os.WriteFile(filepath.Join(c.Paths.Run, SamplerHeartbeat), b, 0o644)
		}
		if s := start1(t, c, time.Now()); s != SamplerRuns {
			t.Errorf("%+v: %s", h, s)
		}
	}
	os.Remove(filepath.Join(c.Paths.Run, SamplerHeartbeat))
}

func TestSamplerNotByUs(t *testing.T) {
	c := samplerConfig(t, "")
	c.Sampler.Start = "systemd"
	if s := start1(t, c, time.Now()); s != SamplerAsked {
		t.Error(s)
	}
	if _, err := os.Stat(filepath.Join(c.Paths.Run, SamplerWanted)); err != nil {
		t.Error(err)
	}
	c.Sampler.Enabled = false
	if s := start1(t, c, time.Now()); s != SamplerOff {
		t.Error(s)
	}
	c = samplerConfig(t, "")
	c.Paths.Probe = "/nonexistent/gpu-probe"
	if s := start1(t, c, time.Now()); s != SamplerFailed {
		t.Error(s)
	}
}
