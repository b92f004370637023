package slurmconf

import (
	"os"
	"path/filepath"
	"strings"
)

// DefaultConf is where Slurm looks when SLURM_CONF is not set, as most packages
// build it.
const DefaultConf = "/etc/slurm/slurm.conf"

// caches are where slurmd and sackd keep a configuration that slurmctld sent.
var caches = []string{"/run/slurm/conf/slurm.conf", "/var/spool/slurmd/conf-cache/slurm.conf", "/var/spool/slurm/d/conf-cache/slurm.conf"}

// Locate finds the slurm.conf in use: the one that is given (SLURM_CONF, our
// configuration), the default, or a configless node's cache. path is "" when
// there is none.
func Locate(given string) (path string, configless bool) {
	for _, p := range append([]string{given, DefaultConf, "/etc/slurm-llnl/slurm.conf"}, caches...) {
		if p == "" {
			continue
		}
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p, isCache(p)
		}
	}
	return "", false
}

// isCache recognises slurmd's cache directory, also below another SlurmdSpoolDir.
func isCache(path string) bool {
	return strings.HasPrefix(path, "/run/slurm/conf/") || filepath.Base(filepath.Dir(path)) == "conf-cache"
}
