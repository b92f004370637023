package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var eccMode = Check{
	Name: "ecc-mode", Code: "ECCMODE", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is ECC on, or as the baseline expects, and not about to change?",
		Why:  "Without ECC a flipped bit goes unseen into the results.",
		Cure: "nvidia-smi -e 1, then reset the GPU; where ECC is off on purpose, say ecc = \"off\" in the baseline.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			m, ok := g.Health.ECC.Get()
			expected := byBaseline(in, g, "ecc")
			switch {
			case ok && m.Current != m.Pending:
				return Finding{Outcome: Fail, Text: "ECC goes " + map[bool]string{true: "on", false: "off"}[m.Pending] + " at the next reset"}
			case expected.Outcome != Skip:
				return expected
			case !ok:
				return unsupported("ECC")
			case !m.Current:
				return Finding{Outcome: Fail, Text: "ECC is off"}
			}
			return Finding{Outcome: Pass}
		})
	},
}
