package check

import (
	"fmt"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var pcieAER = Check{
	Name: "pcie-aer", Code: "AER", Tier: 0, Class: Hardware, Host: true,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Did a GPU or the PCIe port above it report a fatal bus error, a non-fatal one (warning) or many corrected ones (warning, [limits] pcie_errors_per_hour) since the last look?",
		Why:  "A link that corrects errors all the time is slow and close to losing the card; after a fatal error the card is reset or gone, and the job on it with it.",
		Cure: "dmesg | grep -i aer names the kind: RxErr, BadTLP and BadDLLP speak of the signal (reseat the card, the riser, the cable), completion timeouts of the card. If it returns, replace the card or its slot.",
	},
	Run: func(in Input) []Finding {
		if in.Node.Host == nil {
			return unseen()
		}
		var out []Finding
		if f := hostFault(in.Node.Host, "/sys/bus/pci"); f != nil {
			out = append(out, faulty(f))
		}
		counted, compared := false, false
		for _, d := range in.Node.Presence.PCI {
			id := cardAt(in, d.Address)
			if id == nil || !judgedCard(in, id) {
				continue
			}
			slot := d.Slot.Or(gpu.PCISlot{})
			for _, end := range []struct {
				name, address string
				errors        gpu.Counters
			}{{"the card", d.Address, d.AER}, {"the port " + slot.Address, slot.Address, slot.AER}} {
				counted = counted || len(end.errors) > 0
				delta, over, ok := in.growth(end.address, end.errors, time.Time{})
				compared = compared || ok
				if f := judgeAER(end.name, delta, over, in.Limits.PCIeErrorsPerHour); ok && f.Outcome != Pass {
					f.GPU = id
					out = append(out, f)
				}
			}
		}
		switch {
		case len(out) > 0:
		case !counted:
			return []Finding{{Outcome: Skip, Text: "neither the cards nor their ports count errors of the bus"}}
		case !compared:
			return []Finding{{Outcome: Skip, Text: "no earlier look to compare with"}}
		}
		return out
	},
}

// judgeAER judges what one end of a link has counted since the last look.
func judgeAER(who string, delta gpu.Counters, over time.Duration, limit float64) Finding {
	fatal, _ := delta.Get(gpu.AERFatal)
	nonFatal, _ := delta.Get(gpu.AERNonFatal)
	corrected, _ := delta.Get(gpu.AERCorrectable)
	ago := over.Round(time.Second)
	switch rate := hourly(corrected, over); {
	case fatal > 0:
		return Finding{Outcome: Fail, Text: fmt.Sprintf("%s reported fatal PCIe errors: %d in %s", who, fatal, ago)}
	case nonFatal > 0:
		return Finding{Outcome: Warn, Text: fmt.Sprintf("%s reported non-fatal PCIe errors: %d in %s", who, nonFatal, ago)}
	case limit > 0 && rate > limit:
		return Finding{Outcome: Warn, Text: fmt.Sprintf("%s reported corrected PCIe errors: %d in %s, %.0f an hour", who, corrected, ago, rate)}
	}
	return Finding{Outcome: Pass}
}
