package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

// busy is the utilisation from which on a card must run its link at full speed;
// an idle one lowers the generation to save power.
const busy = 0.5

var pcieLink = Check{
	Name: "pcie-link", Code: "PCIE", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Has the PCIe link of the GPU as many lanes as the card can have, and under load its full generation?",
		Why:  "A link that came up with half its lanes halves the bandwidth to the host and slows every job that uses it, without any error.",
		Cure: "Reboot; then reseat the card or riser. A narrow link that all cards of a kind share is taken for the board's design, unless the baseline expects more.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			f := judgeLink(in, g)
			if expected := byBaseline(in, g, "pcie_gen", "pcie_width"); expected.Outcome == Fail && f.Outcome == Pass {
				expected.Outcome = Warn // more than expected, or a slot of another generation
				return expected
			}
			return f
		})
	},
}

func judgeLink(in Input, g *gpu.GPU) Finding {
	width, ok := g.Health.PCIeWidth.Get()
	full, okMax := g.PCIeMaxWidth.Get()
	if !ok || !okMax || width < 1 || full < 1 {
		return unsupported("the width of the PCIe link")
	}
	want := in.Baseline.Cards[g.Name].PCIeWidth
	switch {
	case want > 0 && width < want:
		return Finding{Outcome: Fail, Text: fmt.Sprintf("the PCIe link has %d lanes, the baseline expects %d", width, want)}
	case want == 0 && width < full:
		text := fmt.Sprintf("the PCIe link has %d of %d lanes", width, full)
		for i := range in.Node.GPUs {
			o := &in.Node.GPUs[i]
			if w, ok := o.Health.PCIeWidth.Get(); ok && o.Name == g.Name && w > width {
				return Finding{Outcome: Fail, Text: fmt.Sprintf("%s; GPU %d of the same kind has %d", text, o.Index, w)}
			}
		}
		return Finding{Outcome: Pass, Text: text + ", and no card of its kind here has more: the board's design, unless the baseline says otherwise"}
	}
	gen, ok := g.Health.PCIeGen.Get()
	best, okMax := g.PCIeMaxGen.Get()
	use, okUse := g.Readings[gpu.Utilization]
	if ok && okMax && okUse && gen < best && use >= busy {
		return Finding{Outcome: Warn, Text: fmt.Sprintf("the PCIe link runs at generation %d of %d under load", gen, best)}
	}
	return Finding{Outcome: Pass}
}
