package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var memoryInUse = Check{
	Name: "memory-in-use", Code: "MEMLEAK", Tier: 1, Class: Dirty,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is memory of the GPU (or of a MIG instance) in use, at two looks, although no process is there?",
		Why:  "The next job has less than it was promised, and may die of it.",
		Cure: "Look for a process that hangs in the driver (state D) or in another container; else reset the GPU when the node is empty.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			text, leaked := unowned(in, g)
			switch {
			case slices.Contains(in.Processes.SharedGPUs, g.UUID):
				return Finding{Outcome: Skip, Text: "several jobs may run on this GPU"}
			case leaked && in.suspected(g, "memory-in-use"):
				return Finding{Outcome: Fail, Text: text}
			case text == "":
				return unsupported("memory in use and processes")
			}
			return Finding{Outcome: Pass}
		})
	},
}

// leak is how much memory without a process is no longer the driver's own, bytes.
const leak = 512 << 20

// unowned says how much memory is in use without a process, "" where that cannot
// be known, and whether it is too much. Drivers before 510 count what they
// reserve as used, and a hypervisor's guests are no processes.
func unowned(in Input, g *gpu.GPU) (text string, leaked bool) {
	major, _, _ := strings.Cut(in.Node.Driver.Version.Or(""), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 510 || !g.Complete || strings.HasPrefix(g.Virtualization.Or(""), "host") || processesUnknown(g.Faults) {
		return "", false
	}
	places := []place{{"", g.Readings, g.Processes}}
	if len(g.Instances) > 0 {
		places = nil
	}
	for _, i := range g.Instances {
		if processesUnknown(i.Faults) {
			return "", false
		}
		places = append(places, place{fmt.Sprintf(" in MIG instance %d/%d", i.GI, i.CI), i.Readings, i.Processes})
	}
	for _, p := range places {
		used, ok := p.readings[gpu.MemoryUsed]
		if !ok {
			continue // unified memory, or not told
		}
		if text == "" {
			text = "no memory is in use without a process"
		}
		if used > leak && len(p.processes) == 0 && !leaked {
			text, leaked = fmt.Sprintf("%.0f MiB are in use%s, and no process is there", used/(1<<20), p.where), true
		}
	}
	return text, leaked
}

type place struct {
	where     string
	readings  gpu.Readings
	processes []gpu.Process
}

func processesUnknown(faults []gpu.Fault) bool {
	return slices.ContainsFunc(faults, func(f gpu.Fault) bool { return strings.Contains(f.Call, "Processes") })
}
