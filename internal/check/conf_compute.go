package check

import "gpuhooks/internal/config"

var confCompute = Check{
	Name: "conf-compute", Code: "CONFCOMP", Tier: 1, Class: Config,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Where confidential computing is on: do the GPUs accept work, and without developer tools? Is it on or off as the baseline expects?",
		Why:  "Until their ready state is set the GPUs refuse every job; in DevTools mode nothing is confidential.",
		Cure: "nvidia-smi conf-compute -srs 1 after attestation; DevTools mode is left by nvidia_gpu_tools and a reset.",
	},
	Run: func(in Input) []Finding {
		c, ok := in.Node.Driver.ConfCompute.Get()
		var out []Finding
		switch {
		case ok && c.Enabled && !c.Ready:
			out = append(out, Finding{Outcome: Fail, Text: "confidential computing is on and the GPUs do not accept work yet"})
		case ok && c.Enabled && c.DevTools:
			out = append(out, Finding{Outcome: Warn, Text: "confidential computing is in DevTools mode: nothing is confidential"})
		}
		if in.Node.Driver.Version.IsSet() {
			for _, f := range asFindings(in.Baseline.CompareConfCompute(&in.Node)) {
				f.Outcome = Warn
				out = append(out, f)
			}
		}
		if len(out) == 0 && !ok {
			return []Finding{unsupported("confidential computing")}
		}
		return out
	},
}
