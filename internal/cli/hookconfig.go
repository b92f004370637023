package cli

import (
	"cmp"
	"os"
	"strings"

	"gpuhooks/internal/config"
)

// HookConfig reads the configuration as a hook does: whatever is wrong with it
// is said, and something usable comes back.
func HookConfig(log *Log, path string) config.Config {
	// Where the last good copy lies is itself configured; a broken file cannot
	// say it, so it is looked for in the default place.
	c, problems, broken := config.LoadHook(path, config.LastGood(config.Default().Paths.State))
	for _, p := range problems {
		if broken {
			log.Errorf("%v", p)
		} else {
			log.Warnf("%v", p)
		}
	}
	if broken {
		log.Hintf("gpu-prolog config check --config %s", path)
	}
	return c
}

// NodeName is this node's name in Slurm: the configured one, else slurmd's, else
// the short host name.
func NodeName(c config.Config, slurmd string) string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	host, _, _ = strings.Cut(host, ".")
	return cmp.Or(c.Slurm.NodeName, slurmd, host)
}
