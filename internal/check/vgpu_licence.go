package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var vgpuLicence = Check{
	Name: "vgpu-licence", Code: "LICENCE", Tier: 1, Class: Config,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Has a vGPU guest its licence?",
		Why:  "Without one the driver slows the GPU down after a while, and CUDA stops. Only a baseline with licensed = true makes it a failure.",
		Cure: "systemctl status nvidia-gridd; look for the licence server and the token in /etc/nvidia/ClientConfigToken.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			licensed, ok := g.Health.License.Get()
			expected := byBaseline(in, g, "licensed")
			switch {
			case ok && !licensed && expected.Outcome == Fail:
				return Finding{Outcome: Fail, Text: "the vGPU has no licence"}
			case ok && !licensed:
				return Finding{Outcome: Warn, Text: "the vGPU has no licence"}
			case expected.Outcome == Error:
				return expected
			case !ok:
				return unsupported("a vGPU licence")
			}
			return Finding{Outcome: Pass}
		})
	},
}
