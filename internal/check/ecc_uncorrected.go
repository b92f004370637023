package check

import (
	"fmt"
	"strings"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

var eccUncorrected = Check{
	Name: "ecc-uncorrected", Code: "ECC", Tier: 1, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Did the GPU count uncorrectable memory errors since the last good look?",
		Why:  "Data was lost. Where the driver did not contain the error to one process, later jobs are not safe either.",
		Cure: "Reset the GPU; on Ampere and newer that remaps the row. If the errors come again, or the remap fails, replace the card. A contained error (XID 94) needs nothing but a restart of the application.",
	},
	Run: func(in Input) []Finding {
		return each(in, func(g *gpu.GPU) Finding { return judgeECC(in, g) })
	},
}

// eccPlaces are the memories in which errors are counted.
var eccPlaces = []struct {
	name                string
	volatile, aggregate gpu.Counter
}{
	{"DRAM", gpu.ECCVolUncorrDRAM, gpu.ECCAggUncorrDRAM},
	{"SRAM", gpu.ECCVolUncorrSRAM, gpu.ECCAggUncorrSRAM},
}

func judgeECC(in Input, g *gpu.GPU) Finding {
	good, looked := in.Memory.Good[g.UUID]
	var now, before, old []string // grown and present; grown but cleared by a reset; never compared
	known := false
	delta, _ := gpu.Delta(good, g.Counters)
	for _, p := range eccPlaces {
		vol, isVol := g.Counters.Get(p.volatile)
		_, isAgg := g.Counters.Get(p.aggregate)
		known = known || isVol || isAgg
		grown := max(delta[p.volatile], delta[p.aggregate])
		switch {
		case !looked && vol > 0:
			old = append(old, fmt.Sprintf("%d in %s", vol, p.name))
		case grown == 0:
		case isVol && vol == 0:
			before = append(before, fmt.Sprintf("%d in %s", grown, p.name))
		default:
			now = append(now, fmt.Sprintf("%d in %s", grown, p.name))
		}
	}
	switch {
	case len(now) > 0 && contained(in, g):
		return Finding{Outcome: Warn, Text: "uncorrectable memory errors since the last good look, contained to one process: " + strings.Join(now, ", ")}
	case len(now) > 0:
		return Finding{Outcome: Fail, Text: "uncorrectable memory errors since the last good look: " + strings.Join(now, ", ")}
	case len(before) > 0:
		return Finding{Outcome: Warn, Text: "uncorrectable memory errors before the GPU was reset: " + strings.Join(before, ", ")}
	case len(old) > 0:
		return Finding{Outcome: Warn, Text: "uncorrectable memory errors since the driver was loaded, with no earlier look to compare: " + strings.Join(old, ", ")}
	case !known:
		return unsupported("memory errors")
	}
	return Finding{Outcome: Pass}
}

// contained says that the driver ended one process and the GPU goes on: XID 94
// was logged, nothing worse came with it, and the driver asks for no recovery.
func contained(in Input, g *gpu.GPU) bool {
	if action, ok := g.Health.RecoveryAction.Get(); ok && action != 0 {
		return false
	}
	found := false
	for _, e := range in.Kernel.Events {
		if e.Kind != xid.KindXID || e.PCI != g.PCI {
			continue
		}
		switch e.Code {
		case 94:
			reset, _ := e.Reset.Get()
			drain, _ := e.DrainReset.Get()
			if reset || drain {
				return false
			}
			found = true
		case 64, 95, 140: // remap failed, uncontained, ECC error that asks for a reset
			return false
		}
	}
	return found
}
