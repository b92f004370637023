//go:build cgo

package nvml

import (
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// identify reads what does not change while the driver stays loaded: about ten
// calls, which callers save by keeping the answer.
func identify(d nvml.Device, index int, uuid string, a *answers) gpu.Identity {
	id := gpu.Identity{Index: index, UUID: uuid}
	if p, ret := d.GetPciInfo(); a.ok("nvmlDeviceGetPciInfo_v3", ret) {
		id.PCI = busID(p)
	}
	if s, ret := d.GetName(); a.ok("nvmlDeviceGetName", ret) {
		id.Name = text(s).Or("")
	}
	if n, ret := d.GetMinorNumber(); a.ok("nvmlDeviceGetMinorNumber", ret) {
		if n >= 0 && n < 4096 {
			id.Minor = gpu.Some(n)
		} else {
			a.garbage("nvmlDeviceGetMinorNumber")
		}
	}
	if s, ret := d.GetSerial(); a.ok("nvmlDeviceGetSerial", ret) {
		id.Serial = text(s)
	}
	if s, ret := d.GetVbiosVersion(); a.ok("nvmlDeviceGetVbiosVersion", ret) {
		id.VBIOS = text(s)
	}
	if arch, ret := d.GetArchitecture(); a.ok("nvmlDeviceGetArchitecture", ret) {
		if name, ok := architectures[arch]; ok {
			id.Architecture = gpu.Some(name)
		}
	}
	if n, ret := d.GetMaxPcieLinkGeneration(); a.ok("nvmlDeviceGetMaxPcieLinkGeneration", ret) {
		id.PCIeMaxGen = within(a, "nvmlDeviceGetMaxPcieLinkGeneration", n, 1, 16)
	}
	if n, ret := d.GetMaxPcieLinkWidth(); a.ok("nvmlDeviceGetMaxPcieLinkWidth", ret) {
		id.PCIeMaxWidth = within(a, "nvmlDeviceGetMaxPcieLinkWidth", n, 1, 32)
	}
	if mhz, ret := d.GetMaxClockInfo(nvml.CLOCK_SM); a.ok("nvmlDeviceGetMaxClockInfo", ret) {
		id.MaxSMClock = within(a, "nvmlDeviceGetMaxClockInfo", int(mhz), 1, 100_000)
	}
	links := []nvml.FieldValue{{FieldId: nvml.FI_DEV_NVLINK_LINK_COUNT}}
	if ret := d.GetFieldValues(links); a.ok("nvmlDeviceGetFieldValues", ret) {
		if v, ok := decode(links[0]); ok && v <= nvml.NVLINK_MAX_LINKS {
			id.NVLinks = gpu.Some(int(v))
		}
	}
	return id
}

var architectures = map[nvml.DeviceArchitecture]string{
	nvml.DEVICE_ARCH_KEPLER:    "kepler",
	nvml.DEVICE_ARCH_MAXWELL:   "maxwell",
	nvml.DEVICE_ARCH_PASCAL:    "pascal",
	nvml.DEVICE_ARCH_VOLTA:     "volta",
	nvml.DEVICE_ARCH_TURING:    "turing",
	nvml.DEVICE_ARCH_AMPERE:    "ampere",
	nvml.DEVICE_ARCH_ADA:       "ada",
	nvml.DEVICE_ARCH_HOPPER:    "hopper",
	nvml.DEVICE_ARCH_BLACKWELL: "blackwell",
	nvml.DEVICE_ARCH_RUBIN:     "rubin",
}

// busID is the PCI address as nvidia-smi prints it: 00000000:3B:00.0.
func busID(p nvml.PciInfo) string {
	var b strings.Builder
	for _, c := range p.BusId {
		if c <= ' ' {
			break
		}
		b.WriteByte(byte(c))
	}
	return strings.ToUpper(b.String())
}

// within returns n where it lies in low..high, else notes garbage.
func within(a *answers, call string, n, low, high int) gpu.Opt[int] {
	if n < low || n > high {
		a.garbage(call)
		return gpu.Opt[int]{}
	}
	return gpu.Some(n)
}
