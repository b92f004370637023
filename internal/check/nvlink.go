package check

import (
	"fmt"
	"strconv"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var nvlink = Check{
	Name: "nvlink", Code: "NVLINK", Tier: 1, Class: Fabric,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Are as many NVLinks of the GPU up as the baseline expects, or else as its siblings have?",
		Why:  "Work over several GPUs falls back to PCIe, or fails. Cards without bridge, or whose links are off by design, are all alike and no fault.",
		Cure: "nvidia-smi nvlink -s; see XID 74 or 144-150 and the fabric manager's log; reset the GPUs or reboot, then have card and baseboard examined.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding { return judgeLinks(in, g) })
	},
}

func judgeLinks(in Input, g *gpu.GPU) Finding {
	if g.Health.MIG.Or(gpu.Switch{}).Current {
		return Finding{Outcome: Skip, Text: "a GPU in MIG mode uses no NVLink"}
	}
	links := baseline.Find("nvlinks")
	active, known := g.Health.NVLinksActive.Get()
	if f := byBaseline(in, g, links.Key); f.Outcome != Skip {
		if want, _ := in.Baseline.Cards[g.Name].NVLinks.Get(); known && active > want {
			f.Outcome, f.Class = Warn, Config // an old baseline, hardly a fault
		}
		return f
	}
	if !known {
		return unsupported("NVLinks")
	}
	down := Finding{Outcome: Fail, Text: fmt.Sprintf("%d NVLinks are up", active)}
	if active == 0 {
		down.Text = "no NVLink is up"
	}
	if _, switched := g.Health.Fabric.Get(); switched && active == 0 {
		return down
	}
	value, n, ok := most(in, g, links)
	up, err := strconv.Atoi(value)
	if !ok || err != nil || active >= up {
		return Finding{Outcome: Pass}
	}
	down.Text += fmt.Sprintf("; %d GPUs of the same kind have %d", n, up)
	if n < len(peers(in, g))-1 { // bridges join pairs of cards, not always all
		down.Outcome = Warn
	}
	return down
}
