package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var virtualization = Check{
	Name: "virtualization", Code: "VIRT", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is the GPU a whole card, passed through, or a vGPU, as the baseline expects?",
		Why:  "A virtual machine that was set up otherwise gives jobs another GPU than Slurm promises.",
		Cure: "Correct the hypervisor's configuration of the machine, or the baseline.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding { return byBaseline(in, g, "virtualization") })
	},
}
