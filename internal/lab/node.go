package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Node is one simulated compute node: a slurmd with GPUs of its own.
type Node struct {
	Name    string
	Dir     string   // everything of the node lies below it
	Devices []string // paths of its /dev/nvidiaN in NVML's order
}

func (l *Lab) newNode(name string) (*Node, error) {
	n := &Node{Name: name, Dir: filepath.Join(l.Dir, "nodes", name)}
	if err := os.MkdirAll(filepath.Join(n.Dir, "dev"), 0o755); err != nil {
		return nil, err
	}
	for i := range 8 {
		p := filepath.Join(n.Dir, "dev", fmt.Sprintf("nvidia%d", i))
		if err := syscall.Mknod(p, syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
			return nil, err
		}
		n.Devices = append(n.Devices, p)
	}
	return n, nil
}
