//go:build cgo

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gpuhooks/internal/driver"
)

// pulse keeps the file that tells the prologs that this sampler is alive. It is
// about a process of this machine, also on a simulated node.
type pulse struct {
	run     string
	machine string // boot id
	start   uint64 // of this process, in ticks

	last    time.Time // of the last beat
	written time.Time // anew
	file    *os.File  // nil: to be written anew
	at      int64     // where in it the time stands
}

// heartbeatFull is after how long the file is written anew even if nothing but
// the time has changed: somebody may have taken it away.
const heartbeatFull = time.Minute

// timeDigits has the same length at any time of a common clock.
const timeDigits = "2006-01-02T15:04:05"

// write replaces the file: with what runs it samples, or after a while.
func (p *pulse) write(names []string, now time.Time) error {
	p.close()
	slices.Sort(names)
	now = now.UTC().Truncate(time.Second)
	p.last, p.written = now, now
	h := driver.Heartbeat{PID: os.Getpid(), StartTicks: p.start, BootID: p.machine, Time: now, Runs: names}
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	// There is one writer: a fixed name costs fewer calls than runs.WriteFile.
	fresh := filepath.Join(p.run, "."+driver.SamplerHeartbeat)
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(append(b, '\n')); err == nil {
		err = os.Rename(fresh, filepath.Join(p.run, driver.SamplerHeartbeat))
	}
	at := bytes.Index(b, []byte(now.Format(timeDigits)))
	if err != nil || at < 0 {
		_ = f.Close() // the first error is the one to report
		return err
	}
	p.file, p.at = f, int64(at)
	return nil
}

// beat moves the time in the file on, in place: a new file and a rename would be a
// tenth of the sampler's work. A reader that comes in between may see digits of
// both times, which is none that looks old.
func (p *pulse) beat(now time.Time) error {
	p.last = now
	_, err := p.file.WriteAt(now.UTC().AppendFormat(nil, timeDigits), p.at)
	return err
}

// stale says that the file is to be written anew.
func (p *pulse) stale(now time.Time) bool {
	return p.file == nil || now.Sub(p.written) >= heartbeatFull
}

func (p *pulse) close() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}
