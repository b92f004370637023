package check

import (
	"fmt"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var temperature = Check{
	Name: "temperature", Code: "HOT", Tier: 1, Class: Hardware,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Is the GPU, at two looks, within a few degrees of the temperature at which it slows down ([limits] temperature_margin), or its memory at its highest?",
		Why:  "It is about to slow down, and heat ages it. One look proves nothing: on GB200 the margin moves by tens of degrees within seconds.",
		Cure: "Fans, air flow, inlet temperature, dust, coolant; compare with the siblings.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding {
			text, hot := tooHot(in, g)
			switch {
			case hot && in.suspected(g, "temperature"):
				return Finding{Outcome: Fail, Text: text}
			case text == "":
				return unsupported("how far it is from slowing down")
			}
			return Finding{Outcome: Pass}
		})
	},
}

// tooHot says how warm the card is, "" where that is not known, and whether that
// is too much.
func tooHot(in Input, g *gpu.GPU) (text string, hot bool) {
	margin, known := g.Readings[gpu.TempMargin]
	if limit, ok := g.Slowdown.Get(); !known && ok {
		t, read := g.Readings[gpu.Temperature]
		margin, known = float64(limit)-t, read
	}
	if known {
		text = fmt.Sprintf("%.0f C below the temperature at which it slows down", margin)
		hot = margin <= float64(in.Limits.TemperatureMargin)
	}
	limit, ok := g.MemoryMax.Get()
	if t, read := g.Readings[gpu.MemTemperature]; ok && read && !hot && t >= float64(limit) {
		return fmt.Sprintf("the memory is at %.0f C, its highest", t), true
	}
	return text, hot
}
