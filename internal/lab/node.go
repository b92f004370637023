package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"gpuhooks/internal/sim"
)

// Node is one simulated compute node: a slurmd with GPUs of its own.
type Node struct {
	Name    string
	Dir     string    // everything of the node lies below it
	Devices []string  // paths of its /dev/nvidiaN in NVML's order, as in gres.conf
	Sim     *sim.Node // its GPUs: how to break them
}

func (l *Lab) newNode(name string) (*Node, error) {
	n := &Node{Name: name, Dir: filepath.Join(l.Dir, "nodes", name)}
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if n.Sim, err = sim.NewNode(filepath.Join(n.Dir, "gpus"), l.opts.Profile); err != nil {
		return nil, err
	}
	return n, nil
}

// Root is the directory that holds the node's /proc, /sys and /dev.
func (n *Node) Root() string { return n.Sim.Root() }

// Config is the node's gpuhooks.toml; the file `off` beside it switches the
// hooks of this node off.
func (n *Node) Config() string { return filepath.Join(n.Dir, "gpuhooks.toml") }

// Run is the hooks' state of this boot.
func (n *Node) Run() string { return filepath.Join(n.Dir, "run") }

// Spool is where the node's job records lie.
func (n *Node) Spool() string { return filepath.Join(n.Dir, "spool") }

// Fallback is where records go that the spool does not take.
func (n *Node) Fallback() string { return filepath.Join(n.Run(), "unsent") }

// Log is what the node's slurmd logged: the output of failed hooks is in it.
func (l *Lab) Log(n *Node) string {
	return ReadFile(filepath.Join(l.Dir, "logs", n.Name+".log"))
}

// Tool is a command line prefix for job scripts that makes the GPUs of the job
// busy: the tool of the node on which the job runs.
func (l *Lab) Tool() string {
	return fmt.Sprintf("%s/nodes/$SLURMD_NODENAME/gpu-sim", l.Dir)
}
