package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var sramThreshold = Check{
	Name: "sram-threshold", Code: "SRAM", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Has the driver flagged that the GPU had too many uncorrectable SRAM errors?",
		Why:  "Caches and registers cannot be repaired; NVIDIA takes the flag as the criterion for a return.",
		Cure: "Run NVIDIA's field diagnostic and replace the card.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			return flagged(g.Health.SRAMThreshold, "the SRAM error threshold", "the threshold of uncorrectable SRAM errors is exceeded")
		})
	},
}

// flagged fails where the driver raised a flag that it knows.
func flagged(flag gpu.Opt[bool], what, text string) Finding {
	switch raised, ok := flag.Get(); {
	case !ok:
		return unsupported(what)
	case raised:
		return Finding{Outcome: Fail, Text: text}
	}
	return Finding{Outcome: Pass}
}
