package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

// maxRetired is how many pages a card before Ampere can retire (NVIDIA's
// "Dynamic Page Retirement"; DCGM fails at the same number).
const maxRetired = 63

var retiredPages = Check{
	Name: "retired-pages", Code: "RETIRED", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "How many pages of memory has a GPU before Ampere retired, and is one waiting for a reboot?",
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
			case n >= maxRetired:
				return Finding{Outcome: Fail, Text: fmt.Sprintf("%d memory pages are retired, and there is room for hardly any more", n)}
			case p.Pending:
				return Finding{Outcome: Warn, Text: "a memory page is retired at the next reboot"}
			}
			return Finding{Outcome: Pass}
		})
	},
}
