package node

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/host"
	"gpuhooks/internal/slurmconf"
)

// Slurmd names one start of slurmd, within a boot.
type Slurmd struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start_ticks"` // since boot
}

// ticksPerSecond is the kernel's unit of process times for every program.
const ticksPerSecond = 100

// started is when it was.
func (s Slurmd) started(now time.Time) time.Time {
	boot, err := host.NewFS("/").BootTime(now)
	if err != nil {
		return time.Time{}
	}
	return boot.Add(time.Duration(s.Start) * (time.Second / ticksPerSecond)).UTC().Truncate(time.Second)
}

// maxAncestors bounds the way up from a hook: wrappers and shells lie between.
const maxAncestors = 12

// findSlurmd finds the slurmd that is at work here: the one that started this hook;
// else, for a person, cron or a hook below slurmstepd, what its pid file names, or
// the known one if it still lives. proc is where /proc lies, parent the
// process from which to go up.
func findSlurmd(proc host.FS, parent int, known Slurmd, pidFile string) (Slurmd, bool) {
	for pid, n := parent, 0; pid > 1 && n < maxAncestors; n++ {
		p, err := proc.ProcessStat(pid)
		if err != nil {
			break
		}
		if p.Comm == "slurmd" {
			return Slurmd{PID: p.PID, Start: p.Start}, true
		}
		pid = p.Parent
	}
	if b, err := os.ReadFile(pidFile); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			if s, ok := slurmdAt(proc, pid); ok {
				return s, true
			}
		}
	}
	s, ok := slurmdAt(proc, known.PID)
	return s, ok && s == known
}

// slurmdAt is the slurmd with that number, if that is one.
func slurmdAt(proc host.FS, pid int) (Slurmd, bool) {
	if pid <= 1 {
		return Slurmd{}, false
	}
	p, err := proc.ProcessStat(pid)
	if err != nil || p.Comm != "slurmd" || p.State == 'Z' {
		return Slurmd{}, false
	}
	return Slurmd{PID: pid, Start: p.Start}, true
}

// pidFile is slurmd's pid file by slurm.conf.
func pidFile(c slurmconf.Conf, node string) string {
	s, _ := c.Get("SlurmdPidFile")
	host, _ := os.Hostname() // without one no pid file is found
	host, _, _ = strings.Cut(host, ".")
	return strings.NewReplacer("%n", node, "%h", host).Replace(cmp.Or(s.Value, "/var/run/slurmd.pid"))
}
