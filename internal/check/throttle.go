package check

import (
	"fmt"
	"strings"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var throttle = Check{
	Name: "throttle", Code: "THROTTLE", Tier: 1, Class: Hardware,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is the GPU slowed down by heat or the power brake: now, or for a large share of the time since the last look ([limits] throttled_share)?",
		Why:  "It computes slower than its siblings, and so does every job that waits for it. A power cap at the limit under load is how the card works and no finding; one far below the limit is.",
		Cure: "Heat: fans, air flow, inlet temperature, dust, coolant. Power brake or a cap below the limit: power supplies and the chassis' power policy.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding { return judgeThrottle(in, g) })
	},
}

// hardwareReasons are the bits that are never right.
const hardwareReasons = gpu.ReasonHWSlowdown | gpu.ReasonHWThermal | gpu.ReasonPowerBrake

// lowCap is the share of its power limit below which a capped card is held back by
// something else than its limit.
const lowCap = 0.75

func judgeThrottle(in Input, g *gpu.GPU) Finding {
	bits, known := g.Health.Throttle.Get()
	var why []string
	if names := gpu.ThrottleReasons(bits & hardwareReasons); len(names) > 0 {
		why = append(why, "slowed down now: "+strings.Join(names, ", "))
	}
	power, limit := g.Readings[gpu.Power], g.Health.PowerLimit.Or(0)
	if bits&gpu.ReasonPowerCap != 0 && g.Readings[gpu.Utilization] >= busy && power > 0 && power < lowCap*limit {
		why = append(why, fmt.Sprintf("power is capped at %.0f W of %.0f W", power, limit))
	}
	delta, over, compared := in.cardGrowth(g)
	for _, r := range throttleTimes(g.Counters) {
		_, counted := g.Counters.Get(r.counter)
		known = known || counted
		if share := float64(delta[r.counter]) / float64(max(over, 1)); compared && share > in.Limits.ThrottledShare {
			why = append(why, fmt.Sprintf("slowed down by %s for %.0f %% of the last %s", r.what, 100*min(share, 1), over.Round(time.Second)))
		}
	}
	switch {
	case len(why) > 0:
		return Finding{Outcome: Fail, Text: strings.Join(why, "; ")}
	case !known:
		return unsupported("throttling")
	}
	return Finding{Outcome: Pass}
}

type throttleTime struct {
	counter gpu.Counter
	what    string
}

// throttleTimes are the counters to judge. Older drivers count heat in one.
func throttleTimes(c gpu.Counters) []throttleTime {
	if _, ok := sum(c, gpu.ThrottleHWThermal, gpu.ThrottleSWThermal, gpu.ThrottleHWBrake); !ok {
		return []throttleTime{{gpu.ThrottleThermal, "heat"}}
	}
	return []throttleTime{
		{gpu.ThrottleHWThermal, "heat (hardware)"}, {gpu.ThrottleSWThermal, "heat (driver)"}, {gpu.ThrottleHWBrake, "the power brake"},
	}
}
