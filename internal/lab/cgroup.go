package lab

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// cgroupRoot is where version 1 of the freezer is mounted: it alone is needed to
// track a job's processes.
const cgroupRoot = "/sys/fs/cgroup"

const cgroupConf = `CgroupPlugin=cgroup/v1
CgroupMountpoint=` + cgroupRoot + `
CgroupAutomount=no
`

// CanCgroups says whether this machine lets the lab track jobs with cgroups.
func CanCgroups() bool {
	dir, err := os.MkdirTemp(filepath.Join(cgroupRoot, "freezer"), "gpulab-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	_, err = os.Stat(filepath.Join(dir, "freezer.state"))
	return err == nil
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
