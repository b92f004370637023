package check

import (
	"fmt"
	"slices"
	"strings"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var fabricState = Check{
	Name: "fabric-state", Code: "FABRIC", Tier: 1, Class: Fabric,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Has the NVLink fabric taken the GPU in, with success, and does it find nothing wrong?",
		Why:  "Behind an NVSwitch, CUDA does not start before that (error 802), and work over several GPUs fails or crawls.",
		Cure: "Is nv-fabricmanager running, in the driver's version? Read its log (on NVL72 also nvidia-imex and the switches); then restart it, or reset all GPUs of the board.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding { return judgeFabric(in, g) })
	},
}

func judgeFabric(in Input, g *gpu.GPU) Finding {
	f, ok := g.Health.Fabric.Get()
	if !ok {
		if f := byBaseline(in, g, "fabric"); f.Outcome == Error && !g.Health.MIG.Or(gpu.Switch{}).Current { // a divided card reaches no other
			return f
		}
		return unsupported("an NVLink fabric")
	}
	summary := f.Summary.Or("")
	ill := slices.DeleteFunc(slices.Clone(f.Health), func(s string) bool { return s == "route-recovery" }) // under way
	switch {
	case f.State != "completed":
		// Right after boot the fabric manager may still be at work.
		if _, before := in.Memory.Last[g.UUID]; !before {
			return Finding{Outcome: Error, Text: "the NVLink fabric has not taken the GPU in yet: " + f.State}
		}
		return Finding{Outcome: Fail, Text: "the NVLink fabric has not taken the GPU in: " + f.State}
	case f.Status != 0:
		return Finding{Outcome: Fail, Text: fmt.Sprintf("the NVLink fabric has refused the GPU (status %d)", f.Status)}
	case len(ill) > 0:
		return Finding{Outcome: Fail, Text: "the NVLink fabric complains: " + strings.Join(ill, ", ")}
	case summary == "unhealthy":
		return Finding{Outcome: Fail, Text: "the NVLink fabric calls the GPU unhealthy"}
	case len(f.Health) > 0 || summary == "limited":
		return Finding{Outcome: Warn, Text: "the NVLink fabric works with less than its capacity" + colon(f.Health)}
	}
	return Finding{Outcome: Pass}
}

func colon(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, ", ")
}
