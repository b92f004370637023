//go:build cgo

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// leaveCgroup moves this process to the root of every hierarchy in which it
// lies in a cgroup of Slurm's: a sampler that the first prolog started must
// neither die with slurmd or that job nor count as its memory. Where it cannot
// leave it stays; a service of its own is left alone.
func leaveCgroup() {
	mine, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return
	}
	pid := []byte(strconv.Itoa(os.Getpid()))
	for _, root := range slurmHierarchies(string(mine), string(mounts)) {
		// Not being allowed to is fine.
		_ = os.WriteFile(filepath.Join(root, "cgroup.procs"), pid, 0)
	}
}

// slurmHierarchies returns the mount points of the hierarchies in which
// /proc/self/cgroup shows a cgroup of Slurm's.
func slurmHierarchies(mine, mounts string) []string {
	var roots []string
	for line := range strings.Lines(mine) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(part) != 3 || !strings.Contains(part[2], "slurm") {
			continue
		}
		for mount := range strings.Lines(mounts) {
			f := strings.Fields(mount)
			if len(f) < 4 {
				continue
			}
			v2 := part[1] == "" && f[2] == "cgroup2"
			v1 := part[1] != "" && f[2] == "cgroup" && hasOptions(f[3], strings.TrimPrefix(part[1], "name="))
			if v1 || v2 {
				roots = append(roots, f[1])
				break
			}
		}
	}
	return roots
}

// hasOptions says whether the mount options name all controllers.
func hasOptions(options, controllers string) bool {
	have := strings.Split(options, ",")
	for _, c := range strings.Split(controllers, ",") {
		found := false
		for _, h := range have {
			found = found || h == c || h == "name="+c
		}
		if !found {
			return false
		}
	}
	return true
}
