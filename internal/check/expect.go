package check

import (
	"strings"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/gpu"
)

// byBaseline judges those items of a card that the baseline names: Fail where
// they differ, Error where the driver does not tell them, Skip where the
// baseline expects nothing.
func byBaseline(in Input, g *gpu.GPU, keys ...string) Finding {
	var wrong, unknown []string
	judged := false
	for _, key := range keys {
		d, ok := in.Baseline.CompareCard(g, baseline.Find(key))
		judged = judged || ok
		switch {
		case d == nil:
		case d.Have == "":
			unknown = append(unknown, d.Label)
		default:
			wrong = append(wrong, d.String())
		}
	}
	switch {
	case len(wrong) > 0:
		return Finding{Outcome: Fail, Text: "not as the baseline expects: " + strings.Join(wrong, ", ")}
	case len(unknown) > 0:
		return Finding{Outcome: Error, Text: "the baseline expects what the driver does not report: " + strings.Join(unknown, ", ")}
	case !judged:
		return Finding{Outcome: Skip, Text: "the baseline expects nothing of it"}
	}
	return Finding{Outcome: Pass}
}

// asFindings makes findings of what differs from the baseline about the node.
func asFindings(differences []baseline.Difference) []Finding {
	var out []Finding
	for _, d := range differences {
		f := Finding{Outcome: Fail, Text: "not as the baseline expects: " + d.String()}
		if d.Have == "" {
			f.Outcome = Error
		}
		out = append(out, f)
	}
	return out
}

// peers are the cards of one name in the same MIG mode, the card itself among
// them: those that should be alike.
func peers(in Input, g *gpu.GPU) []*gpu.GPU {
	var out []*gpu.GPU
	for i := range in.Node.GPUs {
		o := &in.Node.GPUs[i]
		if o.Name == g.Name && o.Health.MIG.Or(gpu.Switch{}).Current == g.Health.MIG.Or(gpu.Switch{}).Current {
			out = append(out, o)
		}
	}
	return out
}

// fewestPeers are needed to say who of them is the odd one.
const fewestPeers = 3

// most is what a clear majority of a card's peers have, two thirds of at least
// three, and how many they are.
func most(in Input, g *gpu.GPU, item baseline.Item) (value string, n int, ok bool) {
	var values []string
	for _, o := range peers(in, g) {
		if v, known := item.Have(o); known {
			values = append(values, v)
		}
	}
	value, n, _ = baseline.Majority(values)
	return value, n, len(values) >= fewestPeers && 3*n >= 2*len(values)
}
