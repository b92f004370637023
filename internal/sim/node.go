package sim

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed profiles/*.scenario
var profiles embed.FS

// Node is one simulated node in a directory.
type Node struct {
	Dir string // absolute
}

// Profiles returns the names of the ready scenarios.
func Profiles() []string {
	names, _ := fs.Glob(profiles, "profiles/*.scenario") // the pattern is a constant
	for i, n := range names {
		names[i] = strings.TrimSuffix(filepath.Base(n), ".scenario")
	}
	return names
}

// NewNode makes a node of a ready scenario ("dgx-h100", …; see Profiles) in dir, with its library, tool, state and root. A node that
// already lies there is replaced.
func NewNode(dir, profile string) (*Node, error) {
	text, err := profiles.ReadFile("profiles/" + profile + ".scenario")
	if err != nil {
		return nil, fmt.Errorf("profile %q: not one of %s", profile, strings.Join(Profiles(), ", "))
	}
	return NewNodeOf(dir, string(text))
}

// NewNodeOf makes a node of the text of a scenario.
func NewNodeOf(dir, scenario string) (*Node, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	n := &Node{Dir: dir}
	for _, old := range []string{n.Root(), n.Scenario(), filepath.Join(dir, "state")} {
		if err := os.RemoveAll(old); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Join(n.Root(), "dev"), 0o755); err != nil {
		return nil, err
	}
	if err := Build(dir); err != nil {
		return nil, err
	}
	if branch := branchOf(scenario); branch != "" {
		if err := n.useLibraryOf(branch); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(n.Scenario(), []byte(scenario), 0o644); err != nil {
		return nil, err
	}
	if err := os.WriteFile(n.kernelLog(), nil, 0o644); err != nil {
		return nil, err
	}
	return n, n.tool("sync")
}

// Library is the path of the node's libnvidia-ml.so.1.
func (n *Node) Library() string { return filepath.Join(n.Dir, libraryName) }

// Root is the directory under which the node's /proc, /sys and /dev lie.
// /proc/<pid> is not in it: processes are those of this machine, and what the
// scenario has of daemons and stuck processes is below sim/proc.
func (n *Node) Root() string { return filepath.Join(n.Dir, "root") }

// Scenario is the path of the scenario. After editing it by hand, Sync.
func (n *Node) Scenario() string { return filepath.Join(n.Dir, "scenario") }

// Tool is the path of the node's gpu-sim.
func (n *Node) Tool() string { return filepath.Join(n.Dir, toolName) }

func (n *Node) kernelLog() string { return filepath.Join(n.Root(), "dev", "kmsg") }

// Set changes keys of the scenario ("gpu.3.lost=true") at once, and the root
// with them. An unknown key or a value of the wrong type changes nothing.
func (n *Node) Set(kv ...string) error { return n.tool(append([]string{"set"}, kv...)...) }

// Unset takes keys out of the scenario, so that their defaults hold.
func (n *Node) Unset(keys ...string) error { return n.tool(append([]string{"unset"}, keys...)...) }

// Sync brings counters and root up to the scenario after an edit by hand.
func (n *Node) Sync() error { return n.tool("sync") }

// Xid writes the driver's lines for an XID to the kernel log and raises the
// NVML event. With an empty text it is the one that the code usually has.
func (n *Node) Xid(gpu, code int, text string) error {
	return n.tool("xid", strconv.Itoa(gpu), strconv.Itoa(code), text)
}

// KernelLog appends one message to the node's kernel log.
func (n *Node) KernelLog(line string) error { return n.tool("kmsg", line) }

// Clear resets a GPU: it is no longer lost, its volatile counters begin again,
// no recovery action is left.
func (n *Node) Clear(gpu int) error { return n.tool("clear", strconv.Itoa(gpu)) }

// Calls returns how often each function was called since the scenario says
// count_calls=true: "nvmlDeviceGetName" over all, "nvmlDeviceGetName gpu=3" for one GPU.
func (n *Node) Calls() (map[string]int, error) {
	out, err := exec.Command(n.Tool(), "calls").Output()
	if err != nil {
		return nil, fmt.Errorf("gpu-sim calls: %w", err)
	}
	calls := map[string]int{}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		count, err := strconv.Atoi(line[i+1:])
		if err != nil {
			return nil, fmt.Errorf("gpu-sim calls: line %q: %w", line, err)
		}
		calls[line[:i]] = count
	}
	return calls, nil
}

// ResetCalls sets all counts to zero.
func (n *Node) ResetCalls() error { return n.tool("calls", "--reset") }

// Load returns the command of a workload on this node, ready to be started.
// Its arguments are those of `gpu-sim load`.
func (n *Node) Load(args ...string) *exec.Cmd {
	return exec.Command(n.Tool(), append([]string{"load"}, args...)...)
}

func (n *Node) tool(args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.Command(n.Tool(), args...)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			return fmt.Errorf("%s", text)
		}
		return fmt.Errorf("gpu-sim %s: %w", args[0], err)
	}
	return nil
}
