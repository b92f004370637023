package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
	"gpuhooks/internal/slurmctl"
)

// rememberDevices remembers the list that this look gives, where none is yet:
// whoever comes first after slurmd's start does so, before a card can get lost.
func (l *Look) rememberDevices() {
	d := l.detect()
	if !d.on || d.known() || !l.fitToRemember(d) {
		return
	}
	list, err := slurm.Computed(l.Inventory, l.Gres.ForNode(l.opt.NodeName), l.SlurmOptions())
	if err != nil {
		return // `gpu-prolog resolve` says why
	}
	l.problem("remembering the device list", l.store.keepDevices(d.key, func(now *Devices) {
		if len(now.List) == 0 {
			l.put(now, FromComputed, list)
		}
		d.have = *now
	}))
}

// fitToRemember: a whole answer, of a process that sees the whole node, and a
// slurmd whose list it is.
func (l *Look) fitToRemember(d *detected) bool {
	return d.whose && d.key.BootID != "" && d.key.DriverLoad != "" && d.key.NodeGres != "" &&
		l.Reading.Answer == gpu.AnswerWhole && !l.opt.JobCgroup
}

func (l *Look) put(d *Devices, source string, list []slurm.Entry) {
	now := l.opt.Now().UTC().Truncate(time.Second)
	d.Source, d.List, d.Made, d.Started = source, list, now, d.Slurmd.started(now)
}

// Asking slurmd -G again after a failure, and the time that a look may have
// taken for there to be time for it.
const (
	askAgain = time.Hour
	quick    = 5 * time.Second
)

// AskSlurmd has slurmd -G tell the list, once for each key; only the health check
// has the time. It does nothing where the list is known from it, where there is no
// AutoDetect, or where the driver did not just answer.
func (l *Look) AskSlurmd(ctx context.Context, c slurmctl.Client) error {
	d := l.detect()
	now := l.opt.Now().UTC().Truncate(time.Second)
	if c.Slurmd == "" || !d.on || d.have.Source == FromSlurmdG || !l.fitToRemember(d) || l.Reading.Elapsed > quick {
		return nil
	}
	mine := false
	err := l.store.keepDevices(d.key, func(f *Devices) {
		age := now.Sub(f.Asked)
		hangs := f.Stuck > 0 && l.isSlurmdG(f.Stuck)
		if f.Source == FromSlurmdG || hangs || age >= 0 && age < askAgain {
			return
		}
		mine = true
		f.Asked, f.Stuck = now, 0
	})
	if err != nil || !mine {
		return err
	}
	conf, _ := slurmconf.Locate(cmp.Or(l.opt.SlurmConf, l.cfg.Slurm.Conf))
	devices, err := c.SlurmdG(ctx, conf, l.opt.NodeName, l.store.path("slurmd-G"))
	if stuck := (*slurmctl.StuckError)(nil); errors.As(err, &stuck) {
		return errors.Join(err, l.store.keepDevices(d.key, func(f *Devices) { f.Stuck = stuck.PID }))
	}
	if err != nil {
		return err
	}
	list, err := slurm.Printed(l.Inventory, devices, l.SlurmOptions())
	if err != nil {
		return fmt.Errorf("slurmd -G: %w", err)
	}
	return l.store.keepDevices(d.key, func(f *Devices) {
		l.put(f, FromSlurmdG, list)
		d.have = *f
	})
}

// isSlurmdG says whether that process may still be the one that was left behind.
func (l *Look) isSlurmdG(pid int) bool {
	p, err := cmp.Or(l.opt.proc, host.NewFS("/")).ProcessStat(pid)
	return err == nil && p.State == 'D'
}
