//go:build cgo

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gpuhooks/internal/driver"
)

func TestPulse(t *testing.T) {
	run := t.TempDir()
	p := pulse{run: run, machine: "boot", start: 7}
	defer p.close()
	now := time.Date(2026, 11, 30, 23, 59, 58, 900_000_000, time.UTC)
	if !p.stale(now) {
		t.Error("nothing is written yet")
	}
	if err := p.write([]string{"9.0", "12.1"}, now); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, "2026-11-30T23:59:58Z"}, {time.Second, "2026-11-30T23:59:59Z"}, {2 * time.Second, "2026-12-01T00:00:00Z"}} {
		if c.after > 0 {
			if err := p.beat(now.Add(c.after)); err != nil {
				t.Fatal(err)
			}
		}
		h, err := driver.ReadHeartbeat(run)
		if err != nil || h.Time.Format(time.RFC3339) != c.want || h.PID != os.Getpid() || h.StartTicks != 7 ||
			h.BootID != "boot" || !slices.Equal(h.Runs, []string{"12.1", "9.0"}) {
			t.Errorf("after %v: %+v, %v; want %s", c.after, h, err, c.want)
		}
	}
	if p.stale(now.Add(30 * time.Second)) {
		t.Error("written half a minute ago")
	}
	// Somebody takes the file away: it comes back.
	if err := os.Remove(filepath.Join(run, driver.SamplerHeartbeat)); err != nil {
		t.Fatal(err)
	}
	later := now.Add(2 * time.Minute)
	if !p.stale(later) {
		t.Fatal("not written for two minutes")
	}
	if err := p.write(nil, later); err != nil {
		t.Fatal(err)
	}
	if h, err := driver.ReadHeartbeat(run); err != nil || !h.Time.Equal(later.Truncate(time.Second)) {
		t.Errorf("%+v, %v", h, err)
	}
}
