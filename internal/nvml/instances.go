//go:build cgo

package nvml

import (
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// maxInstances bounds what a driver may answer.
const maxInstances = 16

// mostOf is how many MIG devices a card can have; asking it would be one more
// call. Of cards still to come the driver says where its indexes end.
func mostOf(id gpu.Identity) int {
	switch id.Architecture.Or("") {
	case "ampere", "hopper", "blackwell":
		return 7
	}
	return maxInstances
}

// readInstances reads the MIG devices of a GPU, at most eight calls each.
// Their indexes may have holes.
func (l *Library) readInstances(d nvml.Device, id gpu.Identity, list []process, sample *GPMSample, o Options, a *answers) []gpu.Instance {
	var out []gpu.Instance
	for i := range mostOf(id) {
		m, ret := d.GetMigDeviceHandleByIndex(i)
		if ret == nvml.ERROR_INVALID_ARGUMENT { // beyond the last that this card can have
			break
		}
		if !a.ok("nvmlDeviceGetMigDeviceHandleByIndex", ret) {
			if a.lost() {
				break
			}
			continue
		}
		out = append(out, l.readInstance(d, m, list, sample, o))
	}
	return out
}

func (l *Library) readInstance(parent, m nvml.Device, list []process, sample *GPMSample, o Options) gpu.Instance {
	var in gpu.Instance
	var a answers
	gi, ret := m.GetGpuInstanceId()
	giKnown := a.ok("nvmlDeviceGetGpuInstanceId", ret)
	if giKnown {
		in.GI = gi
	}
	if ci, ret := m.GetComputeInstanceId(); a.ok("nvmlDeviceGetComputeInstanceId", ret) {
		in.CI = ci
	}
	if s, ret := m.GetUUID(); a.ok("nvmlDeviceGetUUID", ret) {
		in.UUID = text(s).Or("")
	}
	if s, ret := m.GetName(); a.ok("nvmlDeviceGetName", ret) {
		in.Profile = profileOf(s)
	}
	in.Readings = gpu.Readings{}
	if mem, ok := l.readMemory(m, &a); ok {
		in.Readings[gpu.MemoryUsed] = float64(mem.used)
		in.MemoryTotal = gpu.Some(mem.total)
	}
	if giKnown {
		c := gpu.Counters{}
		if l.readGPMCounts(parent, gi, sample, c, &a) {
			in.Counters = c
		}
	}
	if !o.CountersOnly {
		in.Processes = of(list, in.GI, in.CI)
	}
	in.Faults = a.faults
	return in
}

// profileOf takes "1g.10gb" from "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
func profileOf(name string) string {
	if i := strings.LastIndex(name, " MIG "); i >= 0 {
		return text(name[i+len(" MIG "):]).Or("")
	}
	return ""
}
