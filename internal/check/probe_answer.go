package check

import (
	"fmt"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

// silence is how far apart two unanswered probes must be before the driver, and
// not a moment of load, is to blame.
const silence = 30 * time.Second

var probeAnswer = Check{
	Name: "probe-answer", Code: "NOANSWER", Tier: 0, Class: Driver,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Does the driver answer at all, and for every GPU, before the deadline?",
		Why:  "A driver that hangs takes every process that touches it along; jobs would stay and could not be killed.",
		Cure: "Look for XID 119/120 and hung tasks in the kernel log; reboot the node, as a driver in this state does not unload.",
	},
	Run: func(in Input) []Finding {
		switch in.Answer {
		case gpu.AnswerWhole:
			return nil
		case gpu.AnswerStuck:
			return []Finding{{Outcome: Fail, Text: "a probe hangs in the driver and cannot be killed"}}
		case gpu.AnswerNone:
			return []Finding{silent(in, nil, "the driver did not answer before the deadline")}
		case gpu.AnswerPartial:
			return partial(in)
		case gpu.AnswerCrash:
			return []Finding{{Outcome: Error, Text: "the probe died"}}
		case gpu.AnswerGarbage:
			return []Finding{{Outcome: Error, Text: "the probe's answer is not in this version's format"}}
		case gpu.AnswerNoProbe:
			return []Finding{{Outcome: Error, Text: "the probe could not be started"}}
		}
		return []Finding{{Outcome: Error, Text: fmt.Sprintf("unknown answer %q", in.Answer)}}
	},
}

// partial judges an answer that broke off. A GPU of which nothing arrived is
// silent; one that arrived in part is judged by the other checks.
func partial(in Input) []Finding {
	if !reached(in) {
		return []Finding{silent(in, nil, "the driver did not answer before the deadline")}
	}
	var out []Finding
	for _, id := range missing(in) {
		out = append(out, silent(in, id, "did not answer before the deadline"))
	}
	for i := range in.Node.GPUs {
		if g := &in.Node.GPUs[i]; in.Judged(g.UUID) && !g.Complete {
			out = append(out, Finding{Outcome: Error, GPU: &g.Identity, Text: "answered only in part before the deadline"})
		}
	}
	if len(out) == 0 {
		out = append(out, Finding{Outcome: Error, Text: "the answer broke off at the deadline"})
	}
	return out
}

// Silent says that the driver, or one of its cards, gave no answer at all.
func Silent(in Input) bool {
	switch in.Answer {
	case gpu.AnswerNone, gpu.AnswerStuck:
		return true
	case gpu.AnswerPartial:
		return !reached(in) || len(missing(in)) > 0
	}
	return false
}

// reached says that the answer came as far as the driver.
func reached(in Input) bool { return in.Node.Driver.Count.IsSet() || len(in.Node.GPUs) > 0 }

// missing are the judged cards that the kernel has and of which nothing arrived.
func missing(in Input) []*gpu.Identity {
	var out []*gpu.Identity
	for _, p := range in.Node.Presence.Proc {
		if in.Judged(p.UUID) && in.Node.Find(p.UUID) == nil {
			out = append(out, procIdentity(p))
		}
	}
	return out
}

// silent is a failure only when an earlier probe, long enough ago, did not
// answer either, and this one waited long enough.
func silent(in Input, who *gpu.Identity, text string) Finding {
	f := Finding{Outcome: Error, GPU: who, Text: text}
	since := in.Memory.NoAnswer
	switch {
	case in.Memory.Hasty != "":
		f.Text += " (" + in.Memory.Hasty + ")"
	case !since.IsZero() && in.Now.Sub(since) >= silence:
		f.Outcome = Fail
		f.Text += fmt.Sprintf(", nor %s ago", in.Now.Sub(since).Round(time.Second))
	}
	return f
}

// procIdentity is what is known of a card that only /proc shows.
func procIdentity(p gpu.ProcGPU) *gpu.Identity {
	return &gpu.Identity{Index: -1, Minor: p.Minor, UUID: p.UUID, PCI: p.Address, Name: p.Model}
}
