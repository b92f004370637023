package node

import (
	"cmp"
	"os"

	"gpuhooks/internal/host"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
)

// Resolve finds the GPUs of a job on the node that was looked at.
func (l *Look) Resolve(j slurm.Job) slurm.Resolution {
	return slurm.Resolve(j, l.Inventory, l.Gres, l.SlurmOptions())
}

// SlurmOptions is what the node's configuration tells about Slurm's device list.
func (l *Look) SlurmOptions() slurm.Options {
	var o slurm.Options
	o.Slurm, _ = slurmconf.ParseVersion(l.slurmVersion())
	if line, ok := l.Conf.Node(l.opt.NodeName); ok && l.ConfErr == nil {
		// Not nil also where the node has none: then that is known.
		o.NodeGres = append([]slurmconf.GresItem{}, line.Gres()...)
	}
	if d := l.detect(); d.known() {
		o.Remembered = &slurm.List{Entries: d.have.List, Source: d.have.describe()}
	}
	return o
}

// slurmVersion is the configured one, else what the node remembers; "" when
// neither is known.
func (l *Look) slurmVersion() string { return cmp.Or(l.cfg.Slurm.Version, l.Memory.Slurm) }

// OwnJob is the job in whose cgroup this process runs itself (PrologFlags=RunInJob),
// or "".
func OwnJob() string {
	p, err := host.FS("/").Process(os.Getpid())
	if err != nil {
		return ""
	}
	return p.Job
}
