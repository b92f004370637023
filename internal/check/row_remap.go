package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var rowRemapFailure = Check{
	Name: "row-remap-failure", Code: "REMAPFAIL", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Did the GPU fail to replace a bad row of its memory by a spare one?",
		Why:  "The memory cannot be repaired: errors there come again.",
		Cure: "Replace the card; NVIDIA takes the flag as the criterion for a return.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			switch r, ok := g.Health.RowRemap.Get(); {
			case !ok:
				return unsupported("row remapping")
			case r.Failure:
				return Finding{Outcome: Fail, Text: fmt.Sprintf("a row of memory could not be remapped (%d remapped before)", r.Corrected+r.Uncorrected)}
			}
			return Finding{Outcome: Pass}
		})
	},
}

var rowRemapPending = Check{
	Name: "row-remap-pending", Code: "REMAP", Tier: 1, Class: Hardware,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Does a row of memory wait for the next reset to be replaced by a spare one?",
		Why:  "Until then the driver keeps the bad page out of use. NVIDIA says that new work may run and the reset can wait for a quiet moment.",
		Cure: "Reset the GPU or reboot when the node is next empty.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			switch r, ok := g.Health.RowRemap.Get(); {
			case !ok:
				return unsupported("row remapping")
			case r.Pending:
				return Finding{Outcome: Fail, Text: "a row remap takes effect at the next reset"}
			}
			return Finding{Outcome: Pass}
		})
	},
}
