package check

import (
	"fmt"

	"gpuhooks/internal/config"
)

var gpuCount = Check{
	Name: "gpu-count", Code: "COUNT", Tier: 1, Class: Hardware, Count: true,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Does the driver have as many GPUs as gres.conf (or the node's Gres in slurm.conf) names?",
		Why:  "A GPU that did not come up at boot leaves no other trace; Slurm would give its place to a job.",
		Cure: "Look at lspci and at the kernel log since boot; reseat or replace the card, or correct gres.conf.",
	},
	Run: func(in Input) []Finding {
		want, ok := in.Expected.GPUs.Get()
		have, known := in.Node.Driver.Count.Get()
		switch {
		case !ok:
			return []Finding{{Outcome: Skip, Text: "Slurm's configuration does not say how many GPUs this node has"}}
		case in.Driverless():
			return []Finding{{Outcome: Skip, Text: "the driver is not loaded"}}
		case !known:
			return []Finding{{Outcome: Error, Text: "the driver did not say how many GPUs it has"}}
		case have < want:
			return []Finding{{Outcome: Fail, Text: fmt.Sprintf("the driver has %d GPUs, Slurm's configuration %d", have, want)}}
		case have > want:
			return []Finding{{Outcome: Warn, Class: Config, Text: fmt.Sprintf("the driver has %d GPUs, Slurm's configuration only %d", have, want)}}
		}
		return nil
	},
}
