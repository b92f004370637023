package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var versions = Check{
	Name: "versions", Code: "VERSION", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Are driver, VBIOS, InfoROM and GSP firmware those of the baseline?",
		Why:  "Nodes that differ give results and speeds that differ; a replaced card often comes with another VBIOS.",
		Cure: "Bring the node to the version of the others, or the baseline to the new one (gpu-healthcheck baseline learn).",
	},
	Run: func(in Input) []Finding {
		out := asFindings(in.Baseline.CompareDriver(&in.Node))
		return append(out, each(in, func(g *gpu.GPU) Finding { return byBaseline(in, g, "vbios", "inforom", "gsp") })...)
	},
}
