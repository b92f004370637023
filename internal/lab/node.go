package lab

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"gpuhooks/internal/sim"
)

// Node is one simulated compute node: a slurmd with GPUs of its own.
type Node struct {
	Name    string
	Dir     string    // everything of the node lies below it
	UUIDs   []string  // of its GPUs in NVML's order
	Devices []string  // paths of its /dev/nvidiaN in NVML's order, as in gres.conf
	Sim     *sim.Node // its GPUs: how to break them

	gres []string // what Slurm hands out: the device files of each card or MIG instance, as in gres.conf
}

func (l *Lab) newNode(name string) (*Node, error) {
	n := &Node{Name: name, Dir: filepath.Join(l.Dir, "nodes", name)}
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if l.opts.Scenario != "" {
		n.Sim, err = sim.NewNodeOf(filepath.Join(n.Dir, "gpus"), l.opts.Scenario)
	} else {
		n.Sim, err = sim.NewNode(filepath.Join(n.Dir, "gpus"), l.opts.Profile)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(n.Sim.Tool(), filepath.Join(n.Dir, "gpu-sim")); err != nil {
		return nil, err
	}
	if err := n.findGPUs(); err != nil {
		return nil, err
	}
	if err := n.ownUUIDs(); err != nil {
		return nil, err
	}
	if err := n.findGPUs(); err != nil {
		return nil, err
	}
	if l.opts.Fence {
		if err := n.ownNumbers(); err != nil {
			return nil, err
		}
	}
	return n, n.findGres()
}

// ownUUIDs gives the cards names and numbers of their own: a profile has the
// same for every node.
func (n *Node) ownUUIDs() error {
	var settings []string
	for i, uuid := range n.UUIDs {
		own := crc32.ChecksumIEEE([]byte(n.Name + uuid))
		settings = append(settings,
			fmt.Sprintf("gpu.%d.uuid=GPU-%08x%s", i, own, uuid[len("GPU-01234567"):]),
			fmt.Sprintf("gpu.%d.serial=165%010d", i, own))
	}
	return n.Sim.Set(settings...)
}

// findGPUs reads the node's /proc/driver/nvidia: sorted by PCI address, which
// is NVML's order, each card with its UUID and its minor.
func (n *Node) findGPUs() error {
	files, err := filepath.Glob(filepath.Join(n.Root(), "proc/driver/nvidia/gpus/*/information"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("no GPUs below %s", n.Root()))
	}
	n.UUIDs, n.Devices = nil, nil
	for _, f := range files { // Glob sorts
		info := map[string]string{}
		for line := range strings.Lines(ReadFile(f)) {
			key, value, _ := strings.Cut(line, ":")
			info[key] = strings.TrimSpace(value)
		}
		n.UUIDs = append(n.UUIDs, info["GPU UUID"])
		n.Devices = append(n.Devices, filepath.Join(n.Root(), "dev", "nvidia"+info["Device Minor"]))
	}
	return nil
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

// HookLog is what the node's hooks said, each line with its time and job.
func (n *Node) HookLog() string { return ReadFile(filepath.Join(n.Dir, "gpuhooks.log")) }

// Tool is a command line prefix for job scripts that makes the GPUs of the job
// busy: the tool of the node on which the job runs.
func (l *Lab) Tool() string {
	return fmt.Sprintf("%s/nodes/$SLURMD_NODENAME/gpu-sim", l.Dir)
}
