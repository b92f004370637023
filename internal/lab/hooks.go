package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func (l *Lab) wrapper(name string) string { return filepath.Join(l.Dir, "etc", name) }

// writeHooks copies the site's wrappers with their three settings edited: where
// the programs are, and each node's own configuration and log.
func (l *Lab) writeHooks() error {
	if l.opts.NoHooks {
		return nil
	}
	settings := map[string]string{
		"sbin":   l.bin(),
		"config": filepath.Join(l.Dir, "nodes", "$SLURMD_NODENAME", "gpuhooks.toml"),
		"log":    filepath.Join(l.Dir, "nodes", "$SLURMD_NODENAME", "gpuhooks.log"),
	}
	for _, name := range []string{"prolog.sh", "epilog.sh", "healthcheck.sh"} {
		text, err := wrapperText(filepath.Join(l.opts.Scripts, name), settings)
		if err != nil {
			return err
		}
		if err := os.WriteFile(l.wrapper(name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	for _, n := range l.Nodes {
		if l.opts.CountCalls {
			if err := n.countCalls(); err != nil {
				return err
			}
		}
		if err := l.SetMode(n, l.opts.Mode); err != nil {
			return err
		}
	}
	return nil
}

// wrapperText is a wrapper of the site with its settings edited.
func wrapperText(path string, settings map[string]string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := string(b)
	for key, value := range settings {
		line := regexp.MustCompile(`(?m)^` + key + `=.*$`)
		if n := len(line.FindAllString(text, -1)); n != 1 {
			return "", fmt.Errorf("%s: %s=: %d lines, want 1", path, key, n)
		}
		text = line.ReplaceAllLiteralString(text, key+`="`+value+`"`)
	}
	return text, nil
}

// SetMode writes a node's gpuhooks.toml. The hooks read it at every start.
func (l *Lab) SetMode(n *Node, mode string) error {
	return os.WriteFile(n.Config(), []byte(l.nodeConfig(n, mode)), 0o644)
}

// nodeConfig is a node's gpuhooks.toml: every path is the node's own.
func (l *Lab) nodeConfig(n *Node, mode string) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Node %s of the lab.\nmode = %q\n", n.Name, mode)
	fmt.Fprintf(&b, "\n[paths]\nroot = %q\nrun = %q\nspool = %q\nstate = %q\nfallback = %q\nprobe = %q\nnvml = %q\nbaseline = %q\n",
		n.Root(), n.Run(), n.Spool(), filepath.Join(n.Dir, "state"), n.Fallback(), filepath.Join(l.bin(), "gpu-probe"), n.Sim.Library(),
		filepath.Join(n.Dir, "baseline.toml"))
	fmt.Fprintf(&b, "\n[slurm]\nconf = %q\nnodename = %q\n", l.SlurmConf(), n.Name)
	for _, p := range slurmCommands {
		path := commandPath(p)
		if l.opts.CountCalls {
			path = n.counted(p)
		}
		fmt.Fprintf(&b, "%s = %q\n", p, path)
	}
	if l.opts.PluginDir != "" {
		fmt.Fprintf(&b, "slurmd = %q\n", n.slurmd())
	}
	b.WriteString(l.opts.NodeConfig)
	return b.String()
}

// commandPath is where a command of Slurm is.
func commandPath(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return "/usr/bin/" + name
	}
	return path
}

// bootCheck lets gpu-healthcheck look at the node before its slurmd starts, as
// a site's boot gate does. A node that is not well is an error of the lab.
func (l *Lab) bootCheck(ctx context.Context, n *Node) error {
	if l.opts.NoHooks {
		return nil
	}
	out, err := l.Program(ctx, n, "gpu-healthcheck", "--boot")
	if err != nil {
		return fmt.Errorf("gpu-healthcheck on %s: %w: %s", n.Name, err, out)
	}
	return nil
}

// Program runs one of the programs on a node as a person would, within 60 s.
func (l *Lab) Program(ctx context.Context, n *Node, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(l.bin(), program), append([]string{"--config", n.Config()}, args...)...)
	cmd.Env = l.clientEnv()
	cmd.Dir = l.Dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Report runs gpu-accounting report on the records of all nodes. A job is named
// as people name it: 12, or 12_3 for a task of an array.
func (l *Lab) Report(ctx context.Context, job string, args ...string) (string, error) {
	argv := append([]string{"report", job}, args...)
	for _, n := range l.Nodes {
		argv = append(argv, "--dir", n.Spool(), "--dir", n.Fallback())
	}
	return l.Program(ctx, l.Nodes[0], "gpu-accounting", argv...)
}

// Hook starts a node's wrapper (prolog.sh, epilog.sh) the way slurmd does, with
// the given variables added to those of every hook, and returns its status.
func (l *Lab) Hook(ctx context.Context, n *Node, script string, env ...string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.wrapper(script))
	cmd.Env = append([]string{
		"SLURM_CONF=" + l.SlurmConf(), "SLURM_CLUSTER_NAME=gpulab", "SLURMD_NODENAME=" + n.Name, "SLURM_NODELIST=" + n.Name,
		"SLURM_SCRIPT_CONTEXT=" + strings.TrimSuffix(script, ".sh") + "_slurmd",
	}, env...)
	cmd.Dir = l.Dir
	err := cmd.Run()
	if _, failed := err.(*exec.ExitError); failed {
		return cmd.ProcessState.ExitCode(), nil
	}
	return 0, err
}
