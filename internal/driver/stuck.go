package driver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/host"
)

// machine is where processes are, whatever root the GPUs are read under.
const machine = host.FS("/")

// abandoned is <run>/probes/<pid>: a process that did not die.
type abandoned struct {
	PID        int       `json:"pid"`
	StartTicks uint64    `json:"start_ticks"`
	BootID     string    `json:"boot_id"`
	Time       time.Time `json:"time"` // when it was given up, UTC
	What       string    `json:"what"` // probe, sampler
}

// note leaves word of a process that survived KILL, for the hooks to come.
func note(run string, a abandoned) error {
	dir := filepath.Join(run, "probes")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, strconv.Itoa(a.PID))
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// living returns a noted process of this boot that still lives. Notes about
// those that are gone, and files that are no notes, are removed.
func living(run string) (abandoned, bool) {
	dir := filepath.Join(run, "probes")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return abandoned{}, false
	}
	boot, err := machine.BootID()
	if err != nil {
		return abandoned{}, false
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		var a abandoned
		b, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(b, &a) != nil || a.BootID != boot || !lives(a.PID, a.StartTicks) {
			// Left for the next call where it cannot be removed.
			_ = os.Remove(path)
			continue
		}
		return a, true
	}
	return abandoned{}, false
}

// lives says whether any thread of the process is left. A process whose first
// thread has ended is shown as a zombie while another one sits in the driver.
func lives(pid int, start uint64) bool {
	p, err := machine.Process(pid)
	if err != nil || p.Start != start {
		return false
	}
	return p.State != 'Z' && p.State != 'X' || len(threads(pid)) > 0
}

// inKernel says whether a thread of the process is in an uninterruptible call.
func inKernel(pid int) bool {
	for _, state := range threads(pid) {
		if state == 'D' {
			return true
		}
	}
	return false
}

// threads returns the states of a process's threads but for those that ended.
func threads(pid int) []byte {
	dir := machine.Path("proc", strconv.Itoa(pid), "task")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []byte
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name(), "stat"))
		if err != nil {
			continue
		}
		// The state follows the name, which ends with the last parenthesis.
		i := strings.LastIndexByte(string(b), ')')
		if i >= 0 && i+2 < len(b) && b[i+2] != 'Z' && b[i+2] != 'X' {
			out = append(out, b[i+2])
		}
	}
	return out
}

func (a abandoned) String() string {
	return fmt.Sprintf("%s %d did not die when killed at %s and still lives", a.What, a.PID, a.Time.UTC().Format(time.RFC3339))
}
