package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var repairPending = Check{
	Name: "repair-pending", Code: "REPAIR", Tier: 1, Class: Hardware,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Does the repair of a memory channel or of a TPC wait for the next reset (Blackwell)?",
		Why:  "Until then the GPU runs with the damaged part.",
		Cure: "Reset the GPU or reboot when the node is next empty.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			switch r, ok := g.Health.Repair.Get(); {
			case !ok:
				return unsupported("pending repairs")
			case r.Channel && r.TPC:
				return Finding{Outcome: Fail, Text: "repairs of a memory channel and of a TPC wait for a reset"}
			case r.Channel:
				return Finding{Outcome: Fail, Text: "the repair of a memory channel waits for a reset"}
			case r.TPC:
				return Finding{Outcome: Fail, Text: "the repair of a TPC waits for a reset"}
			}
			return Finding{Outcome: Pass}
		})
	},
}
