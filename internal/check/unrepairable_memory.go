package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var unrepairableMemory = Check{
	Name: "unrepairable-memory", Code: "UNREPAIR", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Does the driver say that memory of the GPU is beyond repair (Hopper and newer)?",
		Why:  "Errors there come again, and no reset helps.",
		Cure: "Replace the card.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			return flagged(g.Health.Unrepairable, "unrepairable memory", "memory is beyond repair")
		})
	},
}
