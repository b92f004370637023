//go:build cgo

package nvml

import (
	"math"
	mathbits "math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// identify reads what does not change while the driver stays loaded: nearly
// twenty calls, which callers save by keeping the answer.
func (l *Library) identify(d nvml.Device, index int, uuid string, a *answers) gpu.Identity {
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
	l.identifyFirmware(d, &id, a)
	identifyLimits(d, &id, a)
	identifyPlace(d, &id)
	return id
}

// identifyFirmware reads what a baseline compares beside the VBIOS.
func (l *Library) identifyFirmware(d nvml.Device, id *gpu.Identity, a *answers) {
	if s, ret := d.GetInforomImageVersion(); a.ok("nvmlDeviceGetInforomImageVersion", ret) {
		id.InfoROM = text(s)
	}
	if l.has("nvmlDeviceGetGspFirmwareVersion") {
		if s, ret := d.GetGspFirmwareVersion(); a.ok("nvmlDeviceGetGspFirmwareVersion", ret) {
			id.GSP = text(s)
		}
	}
	if m, ret := d.GetVirtualizationMode(); a.ok("nvmlDeviceGetVirtualizationMode", ret) {
		if name, ok := virtualizations[m]; ok {
			id.Virtualization = gpu.Some(name)
		}
	}
}

// identifyLimits reads how many NVLinks the card has, its usual power limit and
// the temperatures at which it slows down.
func identifyLimits(d nvml.Device, id *gpu.Identity, a *answers) {
	ask := []nvml.FieldValue{{FieldId: nvml.FI_DEV_NVLINK_LINK_COUNT}, {FieldId: nvml.FI_DEV_POWER_DEFAULT_LIMIT}}
	if ret := d.GetFieldValues(ask); a.ok("nvmlDeviceGetFieldValues", ret) {
		if v, ok := decode(ask[0]); ok && v <= nvml.NVLINK_MAX_LINKS {
			id.NVLinks = gpu.Some(int(v))
		}
		if mw, ok := decode(ask[1]); ok && mw > 0 {
			id.PowerDefault = gpu.Some(float64(mw) / 1000)
		}
	}
	if !id.PowerDefault.IsSet() { // drivers before 525
		if mw, ret := d.GetPowerManagementDefaultLimit(); a.ok("nvmlDeviceGetPowerManagementDefaultLimit", ret) && mw > 0 && mw != math.MaxUint32 {
			id.PowerDefault = gpu.Some(float64(mw) / 1000)
		}
	}
	if t, ret := d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN); a.ok("nvmlDeviceGetTemperatureThreshold", ret) {
		id.Slowdown = within(a, "nvmlDeviceGetTemperatureThreshold", int(t), 1, 199)
	}
	if t, ret := d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_MEM_MAX); a.ok("nvmlDeviceGetTemperatureThreshold", ret) && t > 0 {
		id.MemoryMax = within(a, "nvmlDeviceGetTemperatureThreshold", int(t), 1, 199)
	}
	_, ret := d.GetFanSpeed() // a sensor that fails belongs to a fan, too
	id.Fan = gpu.Some(ret != nvml.ERROR_NOT_SUPPORTED)
}

// identifyPlace reads the NUMA node and the CPUs near the card.
// nvmlDeviceGetNumaNodeId is not that: it tells the node of the card's own
// memory where the system has made one of it. A machine that cannot say, as
// many virtual ones, is no fault of the card.
func identifyPlace(d nvml.Device, id *gpu.Identity) {
	if set, ret := d.GetMemoryAffinity(maxNUMA, nvml.AFFINITY_SCOPE_NODE); ret == nvml.SUCCESS {
		if nodes := bits(set); len(nodes) == 1 { // more is no answer to "which"
			id.NUMA = gpu.Some(nodes[0])
		}
	}
	if set, ret := d.GetCpuAffinity(maxCPUs); ret == nvml.SUCCESS {
		if cpus := bits(set); len(cpus) > 0 {
			id.CPUs = gpu.Some(ranges(cpus))
		}
	}
}

const (
	maxNUMA = 256
	maxCPUs = 4096
)

// bits are the numbers of the bits set.
func bits(set []uint) []int {
	var out []int
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			out = append(out, i*mathbits.UintSize+mathbits.TrailingZeros(word))
		}
	}
	return out
}

// ranges writes ascending numbers as the kernel does: 0-31,64-95.
func ranges(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 {
			last++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(list[i]))
		if last > i {
			b.WriteString("-" + strconv.Itoa(list[last]))
		}
		i = last + 1
	}
	return b.String()
}

// ages are the architectures from the oldest on.
var ages = []string{"kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell", "rubin"}

// since says that the card is known to be of that architecture or a newer one.
func since(id gpu.Identity, first string) bool {
	return id.Architecture.IsSet() && !before(id, first)
}

// before says that the card is known to be older than first.
func before(id gpu.Identity, first string) bool {
	arch := id.Architecture.Or("")
	return slices.Contains(ages, arch) && slices.Index(ages, arch) < slices.Index(ages, first)
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
