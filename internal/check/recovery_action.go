package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var recoveryAction = Check{
	Name: "recovery-action", Code: "RECOVERY", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Does the driver itself ask for a recovery: a reset, a reboot, a drain?",
		Why:  "It is the driver's own verdict on the GPU (NVML field 230), and stands until what it asks for is done.",
		Cure: "Do what it asks for: reset the GPU or reboot the node, then look again.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			n, ok := g.Health.RecoveryAction.Get()
			switch {
			case !ok:
				return unsupported("a recovery action")
			case n == 0:
				return Finding{Outcome: Pass}
			}
			f := Finding{Outcome: Fail}
			var what string
			f.Code, what = recovery(n)
			if n == 5 {
				f.Class = Fabric
			}
			f.Text = "the driver asks to " + what
			return f
		})
	},
}

// recovery names what NVML's field 230 asks for. A number that is not known yet
// is taken seriously.
func recovery(n int) (code, what string) {
	switch n {
	case 1:
		return "RESET", "reset the GPU"
	case 2:
		return "REBOOT", "reboot the node"
	case 3:
		return "DRAINP2P", "end the jobs that copy peer-to-peer with the GPU, then reset it"
	case 4:
		return "DRAINRESET", "drain the node, then reset the GPU"
	case 5:
		return "IMEX", "recover the IMEX domain"
	}
	return fmt.Sprintf("RECOVERY%d", n), fmt.Sprintf("take recovery action %d", n)
}
