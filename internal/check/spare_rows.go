package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var spareRows = Check{
	Name: "spare-rows", Code: "SPAREROWS", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "How many rows of memory were replaced because of uncorrectable errors, and in how many banks are spare rows running out ([limits] remapped_rows, spare_banks)?",
		Why:  "Where no spare row is left, the next bad one stays in use and the remap fails.",
		Cure: "Few spares left is a warning: plan the card's replacement. At 512 replaced rows NVIDIA replaces it.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			r, remaps := g.Health.RowRemap.Get()
			b, banks := g.Health.RemapBanks.Get()
			few := b.Low + b.None
			switch limit := in.Limits.RemappedRows; {
			case remaps && limit > 0 && r.Uncorrected >= uint64(limit):
				return Finding{Outcome: Fail, Text: fmt.Sprintf("%d rows of memory were replaced because of uncorrectable errors", r.Uncorrected)}
			case banks && few > 0 && few >= in.Limits.SpareBanks:
				return Finding{Outcome: Warn, Text: fmt.Sprintf("few spare rows left: %d memory banks have hardly any, %d none", b.Low, b.None)}
			case !remaps && !banks:
				return unsupported("row remapping")
			}
			return Finding{Outcome: Pass}
		})
	},
}
