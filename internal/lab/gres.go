package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpuhooks/internal/host"
)

// gresConf lists the devices of each node in NVML's order, so that Slurm's
// index is NVML's although the minors differ.
func (l *Lab) gresConf() string {
	if l.opts.PluginDir != "" {
		return "AutoDetect=nvml\n"
	}
	var b strings.Builder
	for _, n := range l.Nodes {
		for _, files := range n.gres {
			key := "File"
			if strings.Contains(files, ",") {
				key = "MultipleFiles"
			}
			fmt.Fprintf(&b, "NodeName=%s Name=gpu Type=h100 %s=%s\n", n.Name, key, files)
		}
	}
	return b.String()
}

// findGres finds what Slurm is to hand out: each card, or in its place the MIG
// instances that it is cut into, as gres.conf names them without AutoDetect.
func (n *Node) findGres() error {
	n.gres = nil
	caps, err := host.NewFS(n.Root()).MIGMinors()
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a driver without MIG
		return err
	}
	for _, device := range n.Devices {
		var minor int
		if _, err := fmt.Sscanf(filepath.Base(device), "nvidia%d", &minor); err != nil {
			return fmt.Errorf("%s: %w", device, err)
		}
		instances := n.instances(device, minor, caps)
		if len(instances) == 0 {
			instances = []string{device}
		}
		n.gres = append(n.gres, instances...)
	}
	return nil
}

// instances are the device files of a card's MIG instances: the card's own, that
// of the GPU instance, and that of the compute instance. The driver makes them
// for those that exist.
func (n *Node) instances(device string, minor int, caps host.MIGMinors) (all []string) {
	file := func(c host.MIGCap) string {
		return filepath.Join(n.Root(), "dev", "nvidia-caps", fmt.Sprintf("nvidia-cap%d", caps[c]))
	}
	number := func(a, b host.MIGCap) int { return caps[a] - caps[b] }
	for _, c := range slices.SortedFunc(maps.Keys(caps), number) {
		if c.GPU != minor || c.CI < 0 {
			continue
		}
		ci, gi := file(c), file(host.MIGCap{GPU: c.GPU, GI: c.GI, CI: -1})
		if _, err := os.Lstat(ci); err == nil {
			all = append(all, device+","+gi+","+ci)
		}
	}
	return all
}
