package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var migPending = Check{
	Name: "mig-pending", Code: "MIGPEND", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Was MIG mode switched and waits for a reset?",
		Why:  "At the next reset the GPU changes its devices under Slurm, and gres.conf is wrong from then on.",
		Cure: "Reset the GPU when it is empty and restart slurmd, or switch the mode back.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			switch m, ok := g.Health.MIG.Get(); {
			case !ok:
				return unsupported("MIG mode")
			case m.Pending && !m.Current:
				return Finding{Outcome: Fail, Text: "MIG mode goes on at the next reset"}
			case m.Current && !m.Pending:
				return Finding{Outcome: Fail, Text: "MIG mode goes off at the next reset"}
			}
			return Finding{Outcome: Pass}
		})
	},
}

var migEmpty = Check{
	Name: "mig-empty", Code: "MIGEMPTY", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Has a GPU in MIG mode any instance?",
		Why:  "Without one no job can compute on it. Instances do not survive a reboot, the mode does.",
		Cure: "Create the instances (nvidia-smi mig -cgi … -C, nvidia-mig-parted) before slurmd starts, or switch MIG mode off.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			switch m, ok := g.Health.MIG.Get(); {
			case !ok:
				return unsupported("MIG mode")
			case m.Current && !g.Complete:
				return Finding{Outcome: Skip}
			case m.Current && len(g.Instances) == 0:
				return Finding{Outcome: Fail, Text: "MIG mode is on and there is no instance"}
			}
			return Finding{Outcome: Pass}
		})
	},
}
