package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
	"gpuhooks/internal/node"
	"gpuhooks/internal/verdict"
)

// HookConfig reads the configuration as a hook does: whatever is wrong with it
// is said, and something usable comes back. broken says that it is not the file:
// the record carries that, so that a site sees it in its store.
func HookConfig(log *Log, path string) (c config.Config, broken bool) {
	c, problems, broken := config.LoadHook(path, config.LastGood(stateOf(path)))
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
	return c, broken
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

// Say logs what a look at the node and the verdict on it have to tell.
func Say(log *Log, look *node.Look, v verdict.Verdict) {
	for _, p := range look.Problems {
		log.Warnf("%v", p)
	}
	if r := look.Reading; r.Why != "" {
		log.Warnf("gpu-probe: %s: %s", r.Answer, r.Why)
		for line := range strings.Lines(r.Stderr) {
			log.Warnf("gpu-probe said: %s", line)
		}
	}
	for _, f := range v.Findings {
		if f.Outcome == check.Fail {
			log.Errorf("%s", f.Line())
		} else {
			log.Warnf("%s", f.Line())
		}
	}
	if v.Action == verdict.WouldDrain {
		log.Warnf("%s", v.Summary())
	}
}

// stateOf finds where the last good copy of a configuration lies. The file says
// so itself, and if it is broken its line may still be whole; else it is the
// default place.
func stateOf(path string) string {
	state := config.Default().Paths.State
	text, err := os.ReadFile(path)
	if err != nil || len(text) > 1<<20 {
		return state
	}
	table := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = line
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || table != "[paths]" || strings.TrimSpace(key) != "state" {
			continue
		}
		if v, err := strconv.Unquote(strings.TrimSpace(value)); err == nil && filepath.IsAbs(v) {
			state = v
		}
	}
	return state
}
