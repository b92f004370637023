package check

import (
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var nvlinkErrors = Check{
	Name: "nvlink-errors", Code: "NVLINKERR", Tier: 1, Class: Fabric,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "How many NVLink errors a minute (CRC, replay, recovery, bad packets) did the GPU count since the last look ([limits] nvlink_errors_per_min)?",
		Why:  "A link that repeats much is slow and often fails next. Totals since boot say nothing: healthy links count some, too.",
		Cure: "Watch it; if it goes on, reset the GPUs of the board when the node is empty, then have card and baseboard examined.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			if delta, _, ok := in.cardGrowth(g); ok && delta[gpu.NVLinkRecoveryFailed] > 0 {
				return Finding{Outcome: Fail, Text: "an NVLink did not recover and went down"}
			}
			return judgeRate(in, g, "NVLink errors", in.Limits.NVLinkErrorsPerMin, time.Minute,
				gpu.NVLinkCRCFlit, gpu.NVLinkCRCData, gpu.NVLinkReplay, gpu.NVLinkRecovery, gpu.NVLinkPacket)
		})
	},
}
