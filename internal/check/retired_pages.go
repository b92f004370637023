package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var retiredPages = Check{
	Name: "retired-pages", Code: "RETIRED", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "How many pages of memory has a GPU before Ampere retired ([limits] retired_pages), and is one waiting for a reboot?",
		Why:  "A card has room for 64 retired pages; a full list means that the next bad page stays in use.",
		Cure: "Reboot for a waiting page; replace the card when the list is full.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			p, ok := g.Health.RetiredPages.Get()
			n := p.SingleBit + p.DoubleBit
			switch {
			case !ok:
				return unsupported("retired pages")
			case in.Limits.RetiredPages > 0 && n >= uint64(in.Limits.RetiredPages):
				return Finding{Outcome: Fail, Text: fmt.Sprintf("%d memory pages are retired, and there is room for hardly any more", n)}
			case p.Pending:
				return Finding{Outcome: Warn, Text: "a memory page is retired at the next reboot"}
			}
			return Finding{Outcome: Pass}
		})
	},
}
