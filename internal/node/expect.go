package node

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
)

// expected is what Slurm believes this node to have: the device files of
// gres.conf, or of the list that slurmd detected, else the number in slurm.conf.
// The latter counts MIG instances as GPUs, so that it says nothing about a node
// that has any.
func expected(gres slurmconf.NodeGres, detected []slurm.Entry, conf slurmconf.Conf, node string, n *gpu.Node) check.Expected {
	var e check.Expected
	for _, d := range gres.Devices() {
		for _, f := range d.Files {
			if c, ok := capOf(f); ok {
				e.Caps = append(e.Caps, c)
			}
			m, ok := minorOf(f)
			if !ok {
				continue
			}
			e.Minors = append(e.Minors, m)
			if slices.ContainsFunc(d.Files, isCap) {
				if e.Instances == nil {
					e.Instances = map[int]int{}
				}
				e.Instances[m]++
			}
		}
	}
	for _, d := range detected {
		if m, ok := d.Minor.Get(); ok && !d.Foreign {
			e.Minors = append(e.Minors, m)
		}
	}
	slices.Sort(e.Minors)
	e.Minors = slices.Compact(e.Minors)
	if len(e.Minors) > 0 {
		e.GPUs = gpu.Some(len(e.Minors))
		return e
	}
	line, ok := conf.Node(node)
	if !ok || migOn(n) {
		return e
	}
	var count int64
	for _, item := range line.Gres() {
		if item.Name == "gpu" {
			count += item.Count
		}
	}
	if count > 0 && count <= maxGPUs {
		e.GPUs = gpu.Some(int(count))
	}
	return e
}

// minorOf reads the N of …/nvidiaN; a capability device (nvidia-capN) has none.
func minorOf(file string) (int, bool) {
	digits, ok := strings.CutPrefix(path.Base(file), "nvidia")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0
}

// isCap says whether it is a MIG instance's …/nvidia-capN.
func isCap(file string) bool { return strings.HasPrefix(path.Base(file), "nvidia-cap") }

// capOf reads the N of …/nvidia-capN.
func capOf(file string) (int, bool) {
	digits, ok := strings.CutPrefix(path.Base(file), "nvidia-cap")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0
}

func migOn(n *gpu.Node) bool {
	return slices.ContainsFunc(n.GPUs, func(g gpu.GPU) bool {
		m, ok := g.Health.MIG.Get()
		return ok && m.Current || len(g.Instances) > 0
	})
}

// hasCgroups says whether Slurm puts each job into a cgroup, so that a process
// can be attributed: it does unless slurm.conf says otherwise.
func hasCgroups(c slurmconf.Conf) bool {
	s, ok := c.Get("ProctrackType")
	return !ok || strings.EqualFold(s.Value, "proctrack/cgroup")
}
