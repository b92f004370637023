package check

import (
	"fmt"
	"slices"
	"strings"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var leftOverProcesses = Check{
	Name: "left-over-processes", Code: "LEFTOVER", Tier: 1, Class: Dirty,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is there a process on the GPU that belongs to no live job, is not on the allow list, and was there at an earlier look at least 3 s ago?",
		Why:  "It holds memory and time of the GPU that the next job needs.",
		Cure: "Find out whose it is and end it; if it hangs in the driver, reboot. Daemons that may hold a GPU go to [processes] allow.",
	},
	Run: func(in Input) []Finding {
		if !in.Processes.HasCgroups {
			return []Finding{{Outcome: Skip, Text: "jobs have no cgroups here, so a process cannot be attributed"}}
		}
		return each(in, func(g *gpu.GPU) Finding {
			if slices.Contains(in.Processes.SharedGPUs, g.UUID) {
				return Finding{Outcome: Skip, Text: "several jobs may run on this GPU"}
			}
			var left []string
			for _, p := range Strays(g, in.Processes) {
				if slices.ContainsFunc(in.Memory.Seen, func(s gpu.Process) bool { return sameProcess(s, p) }) {
					left = append(left, fmt.Sprintf("%d (%s)", p.PID, p.Name))
				}
			}
			switch {
			case len(left) > 0:
				return Finding{Outcome: Fail, Text: "processes of no live job: " + strings.Join(left, ", ")}
			case !g.Complete:
				return Finding{Outcome: Skip}
			}
			return Finding{Outcome: Pass}
		})
	},
}

// Strays are the processes on a GPU, its MIG instances included, that belong to
// no live job and are not allowed to be there. One of them is left over only if
// a later look still finds it.
func Strays(g *gpu.GPU, rules Processes) []gpu.Process {
	all := slices.Clone(g.Processes)
	for _, i := range g.Instances {
		all = append(all, i.Processes...)
	}
	var out []gpu.Process
	for _, p := range all {
		live := p.Job != "" && slices.Contains(rules.LiveJobs, p.Job)
		gone := p.Name == "" && !p.Start.IsSet() // ended between NVML's answer and /proc
		known := slices.ContainsFunc(out, func(o gpu.Process) bool { return o.PID == p.PID })
		if !live && !gone && !known && !allowed(rules.Allow, p.Name) {
			out = append(out, p)
		}
	}
	return out
}

// commLength is how much the kernel keeps of a process's name.
const commLength = 15

// allowed compares names as the kernel keeps them, so that the list may hold
// whole ones.
func allowed(list []string, comm string) bool {
	return comm != "" && slices.ContainsFunc(list, func(name string) bool {
		return comm == name[:min(len(name), commLength)]
	})
}

// sameProcess compares pid and start time: a pid alone is used again.
func sameProcess(a, b gpu.Process) bool {
	sa, ok := a.Start.Get()
	sb, ok2 := b.Start.Get()
	return a.PID == b.PID && ok && ok2 && sa == sb
}
