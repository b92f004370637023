package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var clocks = Check{
	Name: "clocks", Code: "CLOCKS", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is the limit of the SM clock (the application clock) as the baseline expects?",
		Why:  "The driver runs the GPU no faster: a left-over setting slows every job.",
		Cure: "nvidia-smi -rac (-ac MEMORY,SM sets another); where it is meant, write it into the baseline.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding { return byBaseline(in, g, "sm_clock_limit_mhz") })
	},
}
