package check

import (
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var eccCorrected = Check{
	Name: "ecc-corrected", Code: "ECCRATE", Tier: 1, Class: Hardware,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "How many memory errors an hour did the GPU correct since the last look ([limits] corrected_per_hour)?",
		Why:  "Corrected errors are harmless one by one; a storm of them slows the GPU and often comes before uncorrectable ones.",
		Cure: "Watch the card; reset it when it is empty. If the storm comes again, have it replaced.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			return judgeRate(in, g, "corrected memory errors", in.Limits.CorrectedPerHour, time.Hour, gpu.ECCVolCorrDRAM, gpu.ECCVolCorrSRAM)
		})
	},
}
