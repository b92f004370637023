package check

import (
	"fmt"
	"slices"
	"strings"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var pciDevices = Check{
	Name: "pci-devices", Code: "PCI", Tier: 0, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Are the GPUs of the PCI bus, those of the driver (/proc/driver/nvidia/gpus) and those of the baseline the same?",
		Why:  "A card that did not train its link at boot is not on the bus at all, and one bound to another driver (vfio-pci, nouveau) is there for nobody; NVML then shows one GPU less and no error.",
		Cure: "Not on the bus: power the node off and on, then reseat the card or its riser. Another driver: find who bound it (driverctl list-overrides, /etc/modprobe.d), or take the card out of the baseline if it is meant so.",
	},
	Run: func(in Input) []Finding {
		bus, proc, want := in.Node.Presence.PCI, in.Node.Presence.Proc, in.Baseline.Node.PCI
		if f := presenceFault(in, "/sys/bus/pci", "/proc/driver/nvidia/gpus"); f != nil {
			return []Finding{faulty(f)}
		}
		if len(bus) == 0 && len(want) == 0 {
			return []Finding{{Outcome: Skip, Text: "no GPU is on a PCI bus"}}
		}
		var out []Finding
		add := func(address string, f Finding) {
			id := cardAt(in, address)
			if id == nil {
				id = &gpu.Identity{Index: -1, PCI: address}
			}
			if f.GPU = id; judgedCard(in, id) {
				out = append(out, f)
			}
		}
		for _, address := range want {
			if !onBus(bus, address) {
				add(address, Finding{Outcome: Fail, Text: "it is not on the PCI bus, and the baseline has it"})
			}
		}
		for _, p := range proc {
			if len(bus) > 0 && !onBus(bus, p.Address) && !contains(want, p.Address) {
				add(p.Address, Finding{Outcome: Fail, Text: "the driver has it, and it is not on the PCI bus any more"})
			}
		}
		for _, d := range bus {
			if f, odd := judgeDevice(in, d); odd {
				add(d.Address, f)
			}
		}
		return out
	},
}

// judgeDevice judges a card on the bus.
func judgeDevice(in Input, d gpu.PCIDevice) (Finding, bool) {
	want := in.Baseline.Node.PCI
	expected := contains(want, d.Address)
	switch {
	case in.Driverless(): // another check says so
		return Finding{}, false
	case d.Driver != "nvidia":
		text := "no driver holds it"
		if d.Driver != "" {
			text = fmt.Sprintf("it is bound to %s, not to nvidia", d.Driver)
		}
		switch {
		case expected:
			return Finding{Outcome: Fail, Class: Config, Text: text + ", and the baseline has it"}, true
		case len(want) == 0:
			return Finding{Outcome: Warn, Class: Config, Text: text}, true
		}
		return Finding{}, false // kept out of the baseline: meant so
	case len(in.Node.Presence.Proc) > 0 && !slices.ContainsFunc(in.Node.Presence.Proc, func(p gpu.ProcGPU) bool { return strings.EqualFold(p.Address, d.Address) }):
		return Finding{Outcome: Fail, Class: Driver, Text: "the driver holds it and does not show it in /proc/driver/nvidia/gpus"}, true
	case len(want) > 0 && !expected:
		return Finding{Outcome: Warn, Class: Config, Text: "the baseline does not have it"}, true
	}
	return Finding{}, false
}

func onBus(bus []gpu.PCIDevice, address string) bool {
	return slices.ContainsFunc(bus, func(d gpu.PCIDevice) bool { return strings.EqualFold(d.Address, address) })
}

func contains(addresses []string, address string) bool {
	return slices.ContainsFunc(addresses, func(a string) bool { return strings.EqualFold(a, address) })
}

// presenceFault finds a fault of tier 0 by how its path begins.
func presenceFault(in Input, paths ...string) *gpu.Fault {
	for i, f := range in.Node.Presence.Faults {
		if slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(f.Call, p) }) {
			return &in.Node.Presence.Faults[i]
		}
	}
	return nil
}
