package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"gpuhooks/internal/config"
	"gpuhooks/internal/slurmconf"
)

// slurmFiles is slurm.conf and gres.conf, as far as they could be read.
type slurmFiles struct {
	conf    slurmconf.Conf
	confErr error
	gres    slurmconf.Gres
	gresErr error // also when there is none
}

// readSlurm reads them beside the probe: slurm.conf of a large cluster takes a
// while, and one on a file server that is away would never be read.
func readSlurm(c config.Config, opt Options) <-chan slurmFiles {
	read := make(chan slurmFiles, 1)
	go func() {
		var f slurmFiles
		defer func() {
			if v := recover(); v != nil {
				err := fmt.Errorf("internal fault: %v", v)
				f = slurmFiles{confErr: err, gresErr: err}
			}
			read <- f
		}()
		path := cmp.Or(opt.SlurmConf, c.Slurm.Conf)
		f.conf, f.confErr = slurmconf.ReadConf(path)
		f.gres, f.gresErr = slurmconf.ReadGres(cmp.Or(c.Slurm.GresConf, slurmconf.GresPath(path)))
	}()
	return read
}

// takeSlurm waits for them until the look's deadline. A site without gres.conf,
// or with a broken one, is told what does not work without it where that matters.
func (l *Look) takeSlurm(ctx context.Context, files <-chan slurmFiles) {
	var f slurmFiles
	select {
	case f = <-files:
	default:
		select {
		case f = <-files:
		case <-ctx.Done():
			err := errors.New("not read before the deadline")
			f = slurmFiles{confErr: err, gresErr: err}
		}
	}
	l.Conf, l.ConfErr, l.Gres, l.GresErr = f.conf, f.confErr, f.gres, f.gresErr
	if !errors.Is(l.GresErr, fs.ErrNotExist) {
		l.problem("gres.conf", l.GresErr)
	}
}
