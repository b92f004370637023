package check

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var siblings = Check{
	Name: "siblings", Code: "SIBLING", Tier: 1, Class: Config,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is the GPU like the others of its kind on this node: VBIOS, InfoROM, firmware, power and clock limit ([limits] siblings), memory, ECC, compute mode?",
		Why:  "The odd one out slows every job that uses them together. What the baseline names is judged by it instead.",
		Cure: "Set it as the others; a replaced card may need their VBIOS. Two thirds of at least three cards must agree to name the odd one.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding { return judgeSibling(in, g) })
	},
}

// alike are the items that siblings share. NVLinks have a check of their own.
var alike = []string{
	"vbios", "inforom", "gsp", "power_limit_watts", "sm_clock_limit_mhz", "memory_total_bytes", "ecc", "compute_mode", "virtualization",
}

func judgeSibling(in Input, g *gpu.GPU) Finding {
	if n := len(peers(in, g)); n < fewestPeers {
		return Finding{Outcome: Skip, Text: "there are too few cards of its kind to compare with"}
	}
	var odd []string
	compared := false
	for _, key := range alike {
		item := baseline.Find(key)
		have, ok := item.Have(g)
		value, n, clear := most(in, g, item)
		if !ok || !clear || len(item.Want(in.Baseline, g)) > 0 {
			continue
		}
		compared = true
		if !near(have, value, in.Limits.Siblings) {
			odd = append(odd, fmt.Sprintf("%s %s, while %d others have %s", item.Label, have, n, value))
		}
	}
	switch {
	case len(odd) > 0:
		return Finding{Outcome: Fail, Text: "unlike its siblings: " + strings.Join(odd, "; ")}
	case !compared:
		return Finding{Outcome: Skip, Text: "nothing to compare"}
	}
	return Finding{Outcome: Pass}
}

// near says that two values are the same, or as watts and MHz near enough.
func near(a, b string, share float64) bool {
	x, unit, _ := strings.Cut(a, " ")
	y, _, _ := strings.Cut(b, " ")
	if a == b || unit != "W" && unit != "MHz" {
		return a == b
	}
	p, err := strconv.ParseFloat(x, 64)
	q, err2 := strconv.ParseFloat(y, 64)
	return err == nil && err2 == nil && math.Abs(p-q) <= share*q
}
