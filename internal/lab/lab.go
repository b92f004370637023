// Package lab starts a real Slurm cluster on one machine, with simulated GPUs
// in every node and the hooks of this project around every job. `make demo`
// and the end-to-end tests use it.
//
// The cluster is one slurmctld and several slurmd on loopback. It has its own
// ports, configuration, munge key and socket, all below one directory, so that
// a Slurm the machine already has is neither used nor touched.
package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options says what cluster to start. The zero value is the demo's: three
// nodes of profile dgx-h100 with the hooks in enforce mode.
type Options struct {
	// Bin is the directory of the built programs (gpu-prolog and the others).
	Bin string
	// Scripts is the directory of the wrappers a site copies.
	Scripts string
	// Dir is the directory to use, which must not exist; empty makes one.
	Dir string

	Nodes    int    // number of slurmd, 3 if 0
	Profile  string // profile of internal/sim, dgx-h100 if empty
	Scenario string // text of a scenario of internal/sim, in place of a profile
	Mode     string // mode of the hooks, enforce if empty

	// HealthCheck is HealthCheckInterval in seconds; 0 is no HealthCheckProgram.
	HealthCheck int
	// NodeConfig is added to each node's gpuhooks.toml.
	NodeConfig string
	// CountCalls keeps what the hooks of each node ask of Slurm (Node.SlurmCalls).
	CountCalls bool

	// Cgroups tracks jobs with proctrack/cgroup instead of the process tree, and
	// gives each node a real /proc, so that processes on GPUs can be told apart.
	// The nodes are then c1, c2, …, since their names become those of cgroups
	// of the machine. It needs version 1 of the freezer (CanCgroups).
	Cgroups bool
	Prefix  string // of the nodes' names, "n" or, with Cgroups, "c": their cgroups carry it
	// Fence, with Cgroups, keeps each job from the other jobs' cards: task/cgroup
	// with ConstrainDevices. It needs version 1 of the device controller (CanFence).
	Fence bool
	// NoHooks leaves Prolog= and Epilog= out: Slurm alone.
	NoHooks bool
	// PluginDir lets the nodes' slurmd detect the cards (AutoDetect=nvml) with the
	// plugin in it (NVMLPlugin) and the simulated library, and run the health check
	// at its start. Empty: gres.conf lists the device files.
	PluginDir string
	// SlurmConf is added to slurm.conf, one setting a line; a key that the
	// lab sets too takes the value given here.
	SlurmConf []string
	// Log receives one line for each step of the start; nil for silence.
	Log io.Writer
}

// Lab is a running cluster.
type Lab struct {
	Dir   string  // everything of this cluster lies below it
	Nodes []*Node // in the order of their names, n1 first

	opts  Options
	ports []int // slurmctld, then one for each node
	procs []process
}

// Start brings a cluster up: returns when every node is IDLE, or stops what it
// had started and says why. The caller must call Stop.
func Start(ctx context.Context, o Options) (*Lab, error) {
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.Profile == "" {
		o.Profile = "dgx-h100"
	}
	if o.Mode == "" {
		o.Mode = "enforce"
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("lab: needs root: slurmd and device nodes")
	}
	dir, err := makeDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	l := &Lab{Dir: dir, opts: o}
	if !o.NoHooks {
		err = InstallPrograms(o.Bin, l.bin())
	}
	if err == nil {
		err = l.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lab: %w", err), l.Stop())
	}
	return l, nil
}

// makeDir creates the cluster's directory. Its path is short, since a UNIX
// socket lies below it, and root-owned all the way up, since the hooks accept
// a library only from there.
func makeDir(dir string) (string, error) {
	if dir != "" {
		return dir, os.Mkdir(dir, 0o755)
	}
	dir, err := os.MkdirTemp("", "gpulab-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) // jobs of every user look into it
}

func (l *Lab) start(ctx context.Context) error {
	began := time.Now()
	prefix := "n"
	if l.opts.Cgroups {
		prefix = "c"
	}
	prefix = cmp.Or(l.opts.Prefix, prefix)
	for i := range l.opts.Nodes {
		name := fmt.Sprintf("%s%d", prefix, i+1)
		n, err := l.newNode(name)
		if err != nil {
			return fmt.Errorf("node %s: %w", name, err)
		}
		l.Nodes = append(l.Nodes, n)
		if l.opts.Cgroups {
			if err := n.mountProc(); err != nil {
				return fmt.Errorf("node %s: %w", name, err)
			}
		}
	}
	l.logf("%d nodes with %s GPUs in %s", len(l.Nodes), l.opts.Profile, l.Dir)
	if err := l.writeConfig(); err != nil {
		return err
	}
	if err := l.startMunge(ctx); err != nil {
		return err
	}
	if err := l.startSlurmctld(ctx); err != nil {
		return err
	}
	for _, n := range l.Nodes {
		if err := l.bootCheck(ctx, n); err != nil {
			return err
		}
		if err := l.startSlurmd(ctx, n); err != nil {
			return err
		}
	}
	for _, n := range l.Nodes {
		if _, err := l.WaitNode(ctx, n.Name, 30*time.Second, "IDLE"); err != nil {
			return err
		}
	}
	l.logf("Slurm %s is up after %.1f s: %d nodes idle", l.version(ctx), time.Since(began).Seconds(), len(l.Nodes))
	return l.save()
}

// Node returns the node of that name, or of that number ("n2"), whatever its name
// begins with; a wrong name is a mistake of the caller.
func (l *Lab) Node(name string) *Node {
	for i, n := range l.Nodes {
		if n.Name == name || name == fmt.Sprintf("n%d", i+1) {
			return n
		}
	}
	panic("lab: no node " + name)
}

// SlurmConf is the path of the cluster's slurm.conf: SLURM_CONF of whoever
// wants to talk to this cluster.
func (l *Lab) SlurmConf() string { return filepath.Join(l.Dir, "etc", "slurm.conf") }

// Stop ends every process of the cluster, jobs included, and removes its
// directory.
func (l *Lab) Stop() error {
	err := l.kill()
	if l.opts.Cgroups {
		err = errors.Join(err, l.removeCgroups())
	}
	if bad := l.unmount(); bad != nil {
		return errors.Join(err, bad) // what is mounted there must not be removed
	}
	return errors.Join(err, os.RemoveAll(l.Dir))
}

// saved is what StopDir needs to know of a cluster that another process started.
type saved struct {
	Nodes   []string  `json:"nodes"`
	Cgroups bool      `json:"cgroups"`
	Procs   []process `json:"processes"`
}

func (l *Lab) save() error {
	s := saved{Procs: l.procs, Cgroups: l.opts.Cgroups}
	for _, n := range l.Nodes {
		s.Nodes = append(s.Nodes, n.Name)
	}
	b, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.Dir, "lab.json"), b, 0o644)
}

// StopDir stops a cluster that was left running in dir.
func StopDir(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "lab.json"))
	if err != nil {
		return fmt.Errorf("lab: no cluster there: %w", err)
	}
	var s saved
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("lab: %s/lab.json: %w", dir, err)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	l := &Lab{Dir: dir, procs: s.Procs, opts: Options{Cgroups: s.Cgroups}}
	for _, name := range s.Nodes {
		l.Nodes = append(l.Nodes, &Node{Name: name})
	}
	return l.Stop()
}

func (l *Lab) logf(format string, args ...any) {
	fmt.Fprintf(l.opts.Log, strings.TrimRight(format, "\n")+"\n", args...)
}
