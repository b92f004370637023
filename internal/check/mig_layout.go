package check

import (
	"fmt"
	"slices"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var migLayout = Check{
	Name: "mig-layout", Code: "MIGLAYOUT", Tier: 1, Class: Config,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Has each GPU the MIG instances that gres.conf hands out (MultipleFiles), and mode and layout that the baseline expects?",
		Why:  "Slurm gives jobs instances that are not there; they start without a GPU.",
		Cure: "Create the instances (nvidia-mig-parted, nvidia-smi mig) before slurmd starts, or correct gres.conf and restart slurmd.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding { return judgeLayout(in, g) })
	},
}

func judgeLayout(in Input, g *gpu.GPU) Finding {
	minor, hasMinor := g.Minor.Get()
	mode, known := g.Health.MIG.Get()
	want, have := 0, len(g.Instances)
	if hasMinor {
		want = in.Expected.Instances[minor]
	}
	switch {
	case !known && want == 0:
		return byBaseline(in, g, "mig")
	case !known && !g.Complete, mode.Current && !g.Complete:
		return Finding{Outcome: Skip}
	case want > 0 && !mode.Current:
		return Finding{Outcome: Fail, Text: fmt.Sprintf("gres.conf has %d MIG devices of it, and MIG mode is off", want)}
	case have < want:
		return Finding{Outcome: Fail, Text: fmt.Sprintf("%d MIG instances, and gres.conf has %d MIG devices of it", have, want)}
	case want > 0 && have > want:
		return Finding{Outcome: Warn, Text: fmt.Sprintf("%d MIG instances, and gres.conf has only %d MIG devices of it", have, want)}
	case want == 0 && have > 0 && hasMinor && slices.Contains(in.Expected.Minors, minor):
		return Finding{Outcome: Warn, Text: fmt.Sprintf("gres.conf hands out the whole GPU, which is divided into %d MIG instances", have)}
	}
	f := byBaseline(in, g, "mig", "instances")
	switch f.Outcome {
	case Fail:
		f.Outcome = Warn // what Slurm hands out is there
	case Skip:
		f = Finding{Outcome: Pass}
	}
	return f
}
