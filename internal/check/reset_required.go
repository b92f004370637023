package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var resetRequired = Check{
	Name: "reset-required", Code: "RESETREQ", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Does NVML answer RESET_REQUIRED for the GPU?",
		Why:  "The GPU cannot be used, and looks idle and empty to whoever only reads its memory.",
		Cure: "nvidia-smi --gpu-reset -i INDEX with nothing running on it (all GPUs of an NVSwitch board together), or reboot.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			switch {
			case gpu.HasFault(g.Faults, gpu.FaultResetRequired):
				return Finding{Outcome: Fail, Text: "NVML answers RESET_REQUIRED"}
			case !g.Complete:
				return Finding{Outcome: Skip}
			}
			return Finding{Outcome: Pass}
		})
	},
}
