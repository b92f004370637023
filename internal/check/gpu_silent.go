package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

// silentFaults is how many calls must fail before a card without any reading is
// one that the driver cannot talk to, and not one with a broken sensor.
const silentFaults = 4

var gpuSilent = Check{
	Name: "gpu-silent", Code: "SILENT", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Does the GPU, which NVML lists, answer anything that comes from the card itself?",
		Why:  "When the firmware (GSP) has died, name and size still stand there and every error counter is unknown: it looks idle and well, and each job on it fails.",
		Cure: "Look for XID 119, 120 or 154 in the kernel log; drain, reset the GPU or reboot.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			var failed []gpu.Fault
			for _, f := range g.Faults {
				if f.Kind == gpu.FaultOther || f.Kind == gpu.FaultTimeout {
					failed = append(failed, f)
				}
			}
			switch {
			case !g.Complete:
				return Finding{Outcome: Skip} // each says that it broke off
			case len(failed) == 0:
				return Finding{Outcome: Pass}
			case failed[0].Call == "nvmlDeviceGetHandleByIndex":
				return Finding{Outcome: Fail, Text: "the driver cannot open it: " + failed[0].Error()}
			case len(failed) < silentFaults || speaks(g):
				return Finding{Outcome: Pass}
			}
			return Finding{Outcome: Fail, Text: fmt.Sprintf("the driver cannot talk to it: %s, and %d more calls fail", failed[0].Error(), len(failed)-1)}
		})
	},
}

// speaks says that something was read that only the card itself can tell.
func speaks(g *gpu.GPU) bool {
	for _, m := range []gpu.Metric{gpu.Temperature, gpu.Power, gpu.Utilization, gpu.SMClock} {
		if _, ok := g.Readings[m]; ok {
			return true
		}
	}
	return len(g.Counters) > 0
}
