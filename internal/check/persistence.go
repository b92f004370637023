package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var persistence = Check{
	Name: "persistence", Code: "PERSIST", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is persistence mode on?",
		Why:  "Without it the driver initialises the GPU anew for each job: seconds at every start, and settings and error counters are lost in between.",
		Cure: "systemctl enable --now nvidia-persistenced",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			switch on, ok := g.Health.Persistence.Get(); {
			case !ok:
				return unsupported("persistence mode")
			case !on && in.Baseline.Cards[g.Name].Persistence != "off":
				return Finding{Outcome: Fail, Text: "persistence mode is off"}
			}
			return Finding{Outcome: Pass}
		})
	},
}
