package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pluginDirs are where distributions put Slurm's plugins.
var pluginDirs = []string{"/usr/lib/*/slurm-wlm", "/usr/lib/*/slurm", "/usr/lib64/slurm"}

// NVMLPlugin returns Slurm's PluginDir with gpu_nvml.so in it, which AutoDetect=nvml
// needs: Debian has it as slurm-wlm-nvml-plugin, in contrib. extra is one more
// directory to look in, for a plugin that was unpacked and not installed.
func NVMLPlugin(extra string) (dirs string, ok bool) {
	var found []string
	for _, pattern := range pluginDirs {
		match, _ := filepath.Glob(pattern) // the patterns are constants
		found = append(found, match...)
	}
	if extra != "" {
		found = append(found, extra)
	}
	for _, dir := range found {
		if _, err := os.Stat(filepath.Join(dir, "gpu_nvml.so")); err == nil {
			return strings.Join(found, ":"), true
		}
	}
	return "", false
}

// enter gives a node's slurmd a /dev of its own, with the node's cards where
// Slurm's plugin expects them, and the node's mig-minors, in a mount namespace.
const enter = `#!/bin/sh
# usage: enter.sh DIRECTORY OF THE SIMULATED NODE COMMAND…
set -e
gpus=$1
shift
mkdir -p "$gpus/dev"
mount -t tmpfs tmpfs "$gpus/dev"
for f in null zero full random urandom tty; do
	: >"$gpus/dev/$f"
	mount --bind "/dev/$f" "$gpus/dev/$f"
done
cp -a "$gpus"/root/dev/nvidia* "$gpus/dev/"
mount --rbind "$gpus/dev" /dev
if [ -d "$gpus/root/proc/driver/nvidia-caps" ]; then
	mount -t tmpfs tmpfs /proc/driver
	cp -a "$gpus/root/proc/driver/nvidia-caps" /proc/driver/
fi
LD_LIBRARY_PATH=$gpus exec "$@"
`

// writeDetection prepares what a slurmd needs to detect the simulated cards.
func (l *Lab) writeDetection() error {
	if l.opts.PluginDir == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(l.Dir, "etc", "enter.sh"), []byte(enter), 0o755); err != nil {
		return err
	}
	slurmd, err := exec.LookPath("slurmd")
	if err != nil {
		return err
	}
	for _, n := range l.Nodes {
		text := fmt.Sprintf("#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s \"$@\"\n", n.Sim.Dir, slurmd)
		if err := os.WriteFile(n.slurmd(), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// slurmd is the program that finds the node's simulated library.
func (n *Node) slurmd() string { return filepath.Join(n.Dir, "slurmd.sh") }

// entering is the command line with which a node's slurmd sees its cards.
func (l *Lab) entering(n *Node, argv ...string) []string {
	if l.opts.PluginDir == "" {
		return argv
	}
	return append([]string{"unshare", "--mount", filepath.Join(l.Dir, "etc", "enter.sh"), n.Sim.Dir}, argv...)
}
