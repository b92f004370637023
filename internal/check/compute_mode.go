package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var computeMode = Check{
	Name: "compute-mode", Code: "COMPMODE", Tier: 1, Class: Config,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Does the GPU's compute mode let jobs in, and is it as the baseline expects?",
		Why:  "In mode prohibited no program can use the GPU; in an exclusive one a second process of the job cannot.",
		Cure: "nvidia-smi -c DEFAULT (or what the baseline says); it is not kept over a reboot.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			mode, ok := g.Health.ComputeMode.Get()
			expected := byBaseline(in, g, "compute_mode")
			switch {
			case mode == "prohibited":
				return Finding{Outcome: Fail, Text: "the compute mode is prohibited: no program can use the GPU"}
			case expected.Outcome == Fail:
				expected.Outcome = Warn
				return expected
			case !ok:
				return unsupported("its compute mode")
			}
			return Finding{Outcome: Pass}
		})
	},
}
