package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// cgroupRoot is where version 1 of the freezer is mounted: it alone is needed to
// track a job's processes.
const cgroupRoot = "/sys/fs/cgroup"

// cgroupConf is the cluster's cgroup.conf.
func (l *Lab) cgroupConf() string {
	text := "CgroupPlugin=cgroup/v1\nCgroupMountpoint=" + cgroupRoot + "\nCgroupAutomount=no\n"
	if l.opts.Fence {
		text += "ConstrainDevices=yes\n"
	}
	return text
}

// CanCgroups says whether this machine lets the lab track jobs with cgroups.
func CanCgroups() bool { return canUse("freezer", "freezer.state") }

// CanFence says whether it lets the lab keep jobs from devices as well.
func CanFence() bool { return CanCgroups() && canUse("devices", "devices.deny") }

// canUse says whether root may make groups of a controller that have that file.
func canUse(controller, file string) bool {
	dir, err := os.MkdirTemp(filepath.Join(cgroupRoot, controller), "gpulab-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	_, err = os.Stat(filepath.Join(dir, file))
	return err == nil
}

// ownNumbers gives the device files of the cards the numbers that a driver gives
// them. The simulator's are all those of /dev/null, which no job may be kept from.
func (n *Node) ownNumbers() error {
	const major = 195
	for _, d := range n.Devices {
		var minor uint32
		if _, err := fmt.Sscanf(filepath.Base(d), "nvidia%d", &minor); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
		if err := os.Remove(d); err != nil {
			return err
		}
		if err := unix.Mknod(d, unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	return nil
}

func (l *Lab) taskPlugin() string {
	if l.opts.Fence {
		return "cgroup"
	}
	return "none"
}

func (l *Lab) proctrack() string {
	if l.opts.Cgroups {
		return "cgroup"
	}
	return "linuxproc"
}

// removeCgroups takes away what the nodes' slurmd have made: a directory of
// their name in every controller they use.
func (l *Lab) removeCgroups() error {
	var errs []error
	for _, n := range l.Nodes {
		tops, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "slurm_"+n.Name))
		errs = append(errs, err)
		for _, top := range tops {
			var dirs []string
			errs = append(errs, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return err
			}))
			for _, d := range slices.Backward(dirs) { // children first
				errs = append(errs, os.Remove(d))
			}
		}
	}
	return errors.Join(errs...)
}
