package check

import (
	"fmt"
	"strings"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var pcieSlot = Check{
	Name: "pcie-slot", Code: "SLOT", Tier: 0, Class: Hardware, Host: true,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Could the PCIe link of each GPU, by what the card and the port above it are able to, be as fast and wide as the baseline says, or else as that of its siblings?",
		Why:  "A card in the wrong slot, behind a worn riser or under a BIOS that limits the generation halves the bandwidth for good; what the link does just now says nothing, since idle cards lower it.",
		Cure: "lspci -vv -s ADDRESS and of the port (LnkCap, LnkSta); compare the BIOS settings of the slot with a good node, then move or reseat the card. If the board is built so, `gpu-healthcheck baseline learn`.",
	},
	Run: func(in Input) []Finding {
		if in.Node.Host == nil {
			return unseen()
		}
		if f := presenceFault(in, "/sys/bus/pci"); f != nil {
			return []Finding{faulty(f)}
		}
		var out []Finding
		known := false
		for _, d := range in.Node.Presence.PCI {
			id := cardAt(in, d.Address)
			if id == nil || !judgedCard(in, id) {
				continue
			}
			able := abilityOf(d)
			known = known || able.gen > 0 || able.lanes > 0
			if f := judgeSlot(in, d, id, able); f.Outcome != Pass {
				f.GPU = id
				out = append(out, f)
			}
		}
		if !known {
			return []Finding{{Outcome: Skip, Text: "the bus does not tell what its links could do"}}
		}
		return out
	},
}

// ability is the most that a link can be: what both of its ends can. 0 is unknown.
type ability struct{ gen, lanes int }

func abilityOf(d gpu.PCIDevice) ability {
	slot := d.Slot.Or(gpu.PCISlot{})
	both := func(a, b gpu.Opt[int]) int {
		x, y := a.Or(0), b.Or(0)
		if x == 0 || y == 0 {
			return max(x, y)
		}
		return min(x, y)
	}
	return ability{both(d.MaxGen, slot.MaxGen), both(d.MaxWidth, slot.MaxWidth)}
}

// judgeSlot compares with the baseline, which knows the board, or else with the
// best of the cards of the same name.
func judgeSlot(in Input, d gpu.PCIDevice, id *gpu.Identity, able ability) Finding {
	who := "the card and its port can"
	if s, ok := d.Slot.Get(); ok {
		who = fmt.Sprintf("the card and its port %s can", s.Address)
	}
	if want := in.Baseline.Cards[id.Name]; want.PCIeGen > 0 || want.PCIeWidth > 0 {
		switch {
		case able.gen > 0 && able.gen < want.PCIeGen:
			return Finding{Outcome: Fail, Text: fmt.Sprintf("%s only PCIe generation %d of the expected %d", who, able.gen, want.PCIeGen)}
		case able.lanes > 0 && able.lanes < want.PCIeWidth:
			return Finding{Outcome: Fail, Text: fmt.Sprintf("%s only %d of the expected %d lanes", who, able.lanes, want.PCIeWidth)}
		}
		return Finding{Outcome: Pass}
	}
	for _, o := range in.Node.Presence.PCI {
		other := cardAt(in, o.Address)
		if other == nil || other.Name != id.Name || strings.EqualFold(o.Address, d.Address) {
			continue
		}
		switch best := abilityOf(o); {
		case able.gen > 0 && able.gen < best.gen:
			return Finding{Outcome: Warn, Class: Config, Text: fmt.Sprintf("%s only PCIe generation %d, those of %s %d", who, able.gen, o.Address, best.gen)}
		case able.lanes > 0 && able.lanes < best.lanes:
			return Finding{Outcome: Warn, Class: Config, Text: fmt.Sprintf("%s only %d lanes, those of %s %d", who, able.lanes, o.Address, best.lanes)}
		}
	}
	return Finding{Outcome: Pass}
}
