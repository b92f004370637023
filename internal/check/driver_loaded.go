package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var driverLoaded = Check{
	Name: "driver-loaded", Code: "NODRIVER", Tier: 0, Class: Driver,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Is the NVIDIA kernel module loaded, and does NVML find it?",
		Why:  "Without it no GPU job can run.",
		Cure: "modprobe nvidia and read the kernel log; after a kernel update rebuild the module (dkms status).",
	},
	Run: func(in Input) []Finding {
		if loaded, known := in.Node.Presence.ModuleLoaded.Get(); known && !loaded {
			if len(in.Node.Presence.PCI) == 0 && !in.Expected.GPUs.IsSet() {
				return []Finding{{Outcome: Skip, Text: "no NVIDIA device on this node"}}
			}
			return []Finding{{Outcome: Fail, Text: "the nvidia kernel module is not loaded"}}
		}
		if !in.Node.Presence.ModuleLoaded.IsSet() && !in.Node.Driver.Version.IsSet() && len(in.Node.Faults) == 0 {
			return []Finding{{Outcome: Error, Text: "nothing was read of the driver"}}
		}
		for _, f := range in.Node.Faults {
			switch f.Kind {
			case gpu.FaultNoDriver:
				return []Finding{{Outcome: Fail, Text: "NVML finds no driver: " + f.Error()}}
			case gpu.FaultMismatch: // a check of its own
			case gpu.FaultNoLibrary:
				return []Finding{{Outcome: Error, Text: "the NVML library cannot be loaded: " + f.Error()}}
			default:
				return []Finding{{Outcome: Error, Text: "NVML cannot be used: " + f.Error()}}
			}
		}
		return nil
	},
}
