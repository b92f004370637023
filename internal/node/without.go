package node

import (
	"cmp"

	"gpuhooks/internal/config"
	"gpuhooks/internal/slurmconf"
)

// WithoutGPUs says that Slurm has no NVIDIA GPU for the node, so that there is
// nothing to look at and no probe to start: its Gres in slurm.conf names none, or
// gres.conf names another vendor's. What cannot be read is no such answer.
// slurmConf is the file that slurmd works with; "" is the configured one.
func WithoutGPUs(c config.Config, slurmConf, node string) bool {
	path, _ := slurmconf.Locate(cmp.Or(slurmConf, c.Slurm.Conf))
	if path == "" {
		return false
	}
	conf, err := slurmconf.ReadConf(path)
	if err != nil {
		return false
	}
	has, known := slurmconf.NodeHasGPUs(conf, node)
	if !known {
		return false
	}
	if !has {
		return true
	}
	gres, err := slurmconf.ReadGres(cmp.Or(c.Slurm.GresConf, slurmconf.GresPath(path)))
	return err == nil && gres.ForNode(node).Foreign()
}
