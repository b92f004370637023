package check

import (
	"fmt"
	"slices"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var readings = Check{
	Name: "readings", Code: "UNREADABLE", Tier: 1, Class: Driver,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Could everything that was asked about the GPU be read?",
		Why:  "A call that fails for one GPU and not for its neighbours is often the first sign of trouble, and what it would have said stays unknown.",
		Cure: "Run gpu-healthcheck --json for the calls that failed; look at the kernel log.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			switch {
			case g.Lost(), gpu.HasFault(g.Faults, gpu.FaultResetRequired): // checks of their own
				return Finding{Outcome: Pass}
			case len(g.Faults) == 0 && !g.Complete:
				return Finding{Outcome: Skip}
			case len(g.Faults) == 0:
				return Finding{Outcome: Pass}
			}
			outcome := Error
			if !slices.ContainsFunc(g.Faults, func(f gpu.Fault) bool { return f.Call != "nvmlDeviceGetFanSpeed" }) {
				outcome = Warn // a broken sensor: everything that could condemn the card was read
			}
			text := g.Faults[0].Error()
			if more := len(g.Faults) - 1; more > 0 {
				text += fmt.Sprintf(" (and %d more)", more)
			}
			return Finding{Outcome: outcome, Text: text}
		})
	},
}
