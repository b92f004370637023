package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// mountProc gives the node's root a real /proc, with the simulated driver's part
// in it: without one the hooks find no process that uses a GPU. The mounts are
// this cluster's own and private.
func (n *Node) mountProc() error {
	proc, own := filepath.Join(n.Root(), "proc"), filepath.Join(n.Dir, "proc")
	if err := os.Rename(proc, own); err != nil {
		return err
	}
	if err := os.Mkdir(proc, 0o755); err != nil {
		return err
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"proc", proc, "proc", 0},
		{"", proc, "", syscall.MS_PRIVATE},
		{filepath.Join(own, "driver"), filepath.Join(proc, "driver"), "", syscall.MS_BIND},
		{filepath.Join(own, "devices"), filepath.Join(proc, "devices"), "", syscall.MS_BIND},
	} {
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.source, m.target, err)
		}
	}
	return nil
}

// unmount takes away every mount below the cluster's directory, the last first.
func (l *Lab) unmount() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[1], l.Dir+"/") {
			continue
		}
		if err := syscall.Unmount(f[1], syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", f[1], err)
		}
	}
	return nil
}
