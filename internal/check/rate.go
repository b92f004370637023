package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gpuhooks/internal/gpu"
)

// leastTime is how far two looks must be apart to make a rate: over a moment it
// would be chance.
const leastTime = 10 * time.Second

// growth is by how much the counters of a card (key is its UUID), of a PCI device
// (its address) or of a port have grown since the last look at them, and in what
// time. It is false without a look long enough ago.
func (in Input) growth(key string, now gpu.Counters, at time.Time) (gpu.Counters, time.Duration, bool) {
	before, ok := in.Memory.Last[key]
	if at.IsZero() {
		at = in.Node.Time
	}
	over := at.Sub(before.Time)
	if !ok || over < leastTime { // a shared reading may be older than the last look
		return nil, 0, false
	}
	delta, _ := gpu.Delta(before.Counters, now)
	return delta, over, true
}

// cardGrowth is growth for a card.
func (in Input) cardGrowth(g *gpu.GPU) (gpu.Counters, time.Duration, bool) {
	return in.growth(g.UUID, g.Counters, g.Time)
}

// sum adds up those of the counters that are known.
func sum(c gpu.Counters, names ...gpu.Counter) (total uint64, known bool) {
	for _, n := range names {
		if v, ok := c.Get(n); ok {
			total, known = total+v, true
		}
	}
	return total, known
}

// judgeRate warns where the sum of the counters grew faster than limit per unit
// of time.
func judgeRate(in Input, g *gpu.GPU, what string, limit float64, per time.Duration, names ...gpu.Counter) Finding {
	if _, known := sum(g.Counters, names...); !known {
		return unsupported(what)
	}
	delta, over, ok := in.cardGrowth(g)
	n, compared := sum(delta, names...)
	if !ok || !compared {
		return Finding{Outcome: Skip, Text: "no earlier look to compare with"}
	}
	// A burst between two looks in a row is no rate.
	if rate := float64(n) * float64(per) / float64(max(over, min(per, leastRate))); rate > limit {
		return Finding{Outcome: Fail, Text: fmt.Sprintf("%d %s in %s (more than %g %s)", n, what, over.Round(time.Second), limit, unit(per))}
	}
	return Finding{Outcome: Pass}
}

func unit(d time.Duration) string {
	if d == time.Hour {
		return "an hour"
	}
	return "a minute"
}

// suspected says that the last look, long enough ago, found the same of the card:
// what comes and goes within seconds is no finding.
func (in Input) suspected(g *gpu.GPU, check string) bool {
	before, ok := in.Memory.Last[g.UUID]
	at := cmp.Or(g.Time, in.Node.Time)
	return ok && at.Sub(before.Time) >= leastTime && slices.Contains(before.Suspect, check)
}

// Rated are the counters of a card that a later look compares.
var Rated = []gpu.Counter{
	gpu.ECCVolCorrDRAM, gpu.ECCVolCorrSRAM,
	gpu.ThrottleSWThermal, gpu.ThrottleHWThermal, gpu.ThrottleHWBrake, gpu.ThrottleThermal,
	gpu.NVLinkCRCFlit, gpu.NVLinkCRCData, gpu.NVLinkReplay, gpu.NVLinkRecovery, gpu.NVLinkRecoveryFailed, gpu.NVLinkPacket,
	gpu.PCIeReplay, gpu.PCIeCorrectable, gpu.PCIeNonFatal, gpu.PCIeFatal,
}

// Suspects are the checks that find something of the card which counts only if a
// later look finds it, too.
func Suspects(in Input, g *gpu.GPU) []string {
	var out []string
	if _, hot := tooHot(in, g); hot {
		out = append(out, temperature.Name)
	}
	if _, leaked := unowned(in, g); leaked {
		out = append(out, memoryInUse.Name)
	}
	return out
}
