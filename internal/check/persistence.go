package check

import (
	"strings"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var persistence = Check{
	Name: "persistence", Code: "PERSIST", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is persistence mode on?",
		Why:  "Without it the driver initialises the GPU anew for each job: seconds at every start, and settings and error counters are lost in between.",
		Cure: "systemctl enable --now nvidia-persistenced",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			expected := in.Baseline.Cards[g.Name].Persistence
			switch on, ok := g.Health.Persistence.Get(); {
			case !ok:
				return unsupported("persistence mode")
			case on || expected == "off":
				return Finding{Outcome: Pass}
			case expected == "" && len(g.Processes) > 0:
				return Finding{Outcome: Pass, Text: "persistence mode is off; a process keeps the driver's state meanwhile"}
			case expected == "" && workstation(g.Name):
				return Finding{Outcome: Pass, Text: "persistence mode is off, as is usual for a workstation's card"}
			}
			return Finding{Outcome: Fail, Text: "persistence mode is off"}
		})
	},
}

// workstation says that a card is made for a desk, where a display usually keeps
// the driver's state: GeForce, Quadro and RTX without "Server".
func workstation(name string) bool {
	for _, kind := range []string{"GeForce", "Quadro", "TITAN", " RTX "} {
		if strings.Contains(name, kind) {
			return !strings.Contains(name, "Server")
		}
	}
	return false
}
