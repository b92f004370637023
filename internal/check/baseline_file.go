package check

import "gpuhooks/internal/config"

var baselineFile = Check{
	Name: "baseline", Code: "BASELINE", Tier: 1, Class: Config, Count: true,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Can the node's baseline be read, and has the node as many GPUs of each kind as it says?",
		Why:  "While it cannot be read nothing is compared with it. Other checks judge the rest of it.",
		Cure: "gpu-healthcheck baseline check names what differs; gpu-healthcheck baseline learn prints a new one.",
	},
	Run: func(in Input) []Finding {
		switch {
		case in.Unusable != "":
			return []Finding{{Outcome: Error, Text: in.Unusable}}
		case in.Baseline.Schema == "":
			return []Finding{{Outcome: Skip, Text: "there is none"}}
		case !in.Answered():
			return []Finding{{Outcome: Error, Text: "the driver did not answer for all GPUs"}}
		}
		return asFindings(in.Baseline.CompareCounts(&in.Node))
	},
}
