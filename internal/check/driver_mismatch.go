package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var driverMismatch = Check{
	Name: "driver-mismatch", Code: "MISMATCH", Tier: 1, Class: Driver,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Do the driver's libraries fit the loaded kernel module?",
		Why:  "The libraries were updated under a running kernel module: nothing that opens the driver from now on works.",
		Cure: "Unload and load the kernel module, or reboot; keep driver packages from being updated unattended.",
	},
	Run: func(in Input) []Finding {
		if !gpu.HasFault(in.Node.Faults, gpu.FaultMismatch) {
			if !in.Node.Driver.Version.IsSet() {
				return []Finding{{Outcome: Skip, Text: "NVML did not answer"}}
			}
			return nil
		}
		text := "the NVML library and the kernel module have different versions"
		if v, ok := in.Node.Presence.ModuleVersion.Get(); ok {
			text += ": the module is " + v
			if lib, ok := in.Node.Driver.NVML.Get(); ok {
				text += ", the library " + lib
			}
		}
		return []Finding{{Outcome: Fail, Text: text}}
	},
}
