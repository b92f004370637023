package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var powerLimit = Check{
	Name: "power-limit", Code: "POWERLIMIT", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is the GPU's power limit as the baseline expects, or else not below the card's default?",
		Why:  "Under a lower limit it computes slower, without any error.",
		Cure: "nvidia-smi -pl WATTS (not kept over a reboot); where the limit is meant, write it into the baseline.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			if f := byBaseline(in, g, "power_limit_watts"); f.Outcome != Skip {
				return f
			}
			limit, ok := g.Health.PowerLimit.Get()
			usual, known := g.PowerDefault.Get()
			switch {
			case !ok || !known:
				return unsupported("its power limit and default")
			case limit < usual-1:
				return Finding{Outcome: Fail, Text: fmt.Sprintf("the power limit is %.0f W, the card's default %.0f W", limit, usual)}
			}
			return Finding{Outcome: Pass}
		})
	},
}
