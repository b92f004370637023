package check

import (
	"fmt"
	"slices"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var deviceCaps = Check{
	Name: "device-caps", Code: "DEVCAP", Tier: 0, Class: Driver, Host: true,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Is there a /dev/nvidia-caps/nvidia-capN for every MIG instance that gres.conf names or the driver shows?",
		Why:  "Access to a MIG instance goes through that device; a job without it sees no GPU, and slurmd does not start where gres.conf names a file that is missing.",
		Cure: "nvidia-modprobe -f /proc/driver/nvidia/capabilities/gpuN/mig/gi…/access makes one; if gres.conf names an instance that does not exist any more, correct it or make the instances again.",
	},
	Run: func(in Input) []Finding {
		if in.Node.Host == nil {
			return unseen()
		}
		if f := hostFault(in.Node.Host, "nvidia-caps"); f != nil {
			return []Finding{faulty(f)}
		}
		p := &in.Node.Presence
		switch {
		case in.Driverless():
			return []Finding{{Outcome: Skip, Text: "the driver is not loaded"}}
		case len(p.Caps) == 0 && len(in.Expected.Caps) == 0:
			return []Finding{{Outcome: Skip, Text: "no MIG instance is known"}}
		}
		var out []Finding
		miss := func(outcome Outcome, minor int, from string) {
			if slices.Contains(p.CapMinors, minor) {
				return
			}
			owner, what := capOwner(in, minor)
			if judgedCard(in, owner) {
				out = append(out, Finding{Outcome: outcome, GPU: owner, Text: fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d%s%s is missing", minor, from, what)})
			}
		}
		for _, minor := range in.Expected.Caps {
			miss(Fail, minor, " of gres.conf")
		}
		for _, c := range p.Caps {
			if !slices.Contains(in.Expected.Caps, c.Minor) {
				miss(Warn, c.Minor, "") // the driver's tools make it when it is first used
			}
		}
		return oneEach(out)
	},
}

// oneEach leaves one finding for each card and outcome, which counts the others.
func oneEach(all []Finding) []Finding {
	var out []Finding
	var more []int
	for _, f := range all {
		i := slices.IndexFunc(out, func(o Finding) bool {
			same := o.GPU == nil && f.GPU == nil || o.GPU != nil && f.GPU != nil && o.GPU.PCI == f.GPU.PCI
			return same && o.Outcome == f.Outcome
		})
		if i < 0 {
			out, more = append(out, f), append(more, 0)
			continue
		}
		more[i]++
	}
	for i, n := range more {
		if n > 0 {
			out[i].Text += fmt.Sprintf(", and %d more", n)
		}
	}
	return out
}

// capOwner says whose capability device N is.
func capOwner(in Input, minor int) (*gpu.Identity, string) {
	for _, c := range in.Node.Presence.Caps {
		if c.Minor != minor {
			continue
		}
		what := fmt.Sprintf(" (GPU instance %d", c.GI)
		if c.CI >= 0 {
			what += fmt.Sprintf(", compute instance %d", c.CI)
		}
		return minorGPU(in, c.GPU), what + ")"
	}
	return nil, ""
}
