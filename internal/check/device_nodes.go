package check

import (
	"fmt"
	"slices"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var deviceNodes = Check{
	Name: "device-nodes", Code: "DEVNODE", Tier: 0, Class: Driver,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Are /dev/nvidiactl and the /dev/nvidiaN of gres.conf (or of every GPU that the driver has) there?",
		Why:  "Slurm gives jobs the device files that gres.conf names; a job whose file is missing has no GPU.",
		Cure: "nvidia-modprobe -c 0 -c 1 … makes them; see that nvidia-persistenced or a udev rule does it at boot.",
	},
	Run: func(in Input) []Finding {
		control, known := in.Node.Presence.Control.Get()
		switch {
		case !known:
			return []Finding{{Outcome: Error, Text: "/dev could not be read" + faultText(in.Node.Presence.Faults)}}
		case in.Driverless():
			return []Finding{{Outcome: Skip, Text: "the driver is not loaded"}}
		case len(in.Node.Presence.Proc) == 0 && len(in.Expected.Minors) == 0:
			return []Finding{{Outcome: Skip, Text: "no GPU is known from /proc or gres.conf"}}
		case !control:
			return []Finding{{Outcome: Fail, Text: "/dev/nvidiactl is missing"}}
		}
		var out []Finding
		for _, minor := range wantedMinors(in) {
			if slices.Contains(in.Node.Presence.DeviceMinors, minor) {
				continue
			}
			owner := minorGPU(in, minor)
			if owner != nil && !in.Judged(owner.UUID) || owner == nil && in.Only != nil {
				continue
			}
			out = append(out, Finding{Outcome: Fail, GPU: owner, Text: fmt.Sprintf("/dev/nvidia%d is missing", minor)})
		}
		return out
	},
}

// wantedMinors are the device files that must be there, ascending.
func wantedMinors(in Input) []int {
	want := slices.Clone(in.Expected.Minors)
	if len(want) == 0 {
		for _, p := range in.Node.Presence.Proc {
			if m, ok := p.Minor.Get(); ok {
				want = append(want, m)
			}
		}
	}
	slices.Sort(want)
	return slices.Compact(want)
}

// minorGPU finds the card behind /dev/nvidiaN; nil when nobody knows it.
func minorGPU(in Input, minor int) *gpu.Identity {
	for i := range in.Node.GPUs {
		if m, ok := in.Node.GPUs[i].Minor.Get(); ok && m == minor {
			return &in.Node.GPUs[i].Identity
		}
	}
	for _, p := range in.Node.Presence.Proc {
		if m, ok := p.Minor.Get(); ok && m == minor {
			return procIdentity(p)
		}
	}
	return nil
}

// faultText says why, where a reader said so.
func faultText(faults []gpu.Fault) string {
	if len(faults) == 0 {
		return ""
	}
	return ": " + faults[0].Error()
}
