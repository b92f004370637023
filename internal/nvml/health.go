//go:build cgo

package nvml

import (
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// decisive fills what is already known from the field values: enough to judge
// a broken card before anything slower was asked.
func decisive(f fieldValues, a *answers) gpu.Health {
	var h gpu.Health
	// Any number but 0 is a verdict, so one that cannot be must not pass for it.
	if v, ok := f.upTo(nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, 255, a); ok {
		h.RecoveryAction = gpu.Some(int(v))
	}
	if mw, ok := f.upTo(nvml.FI_DEV_POWER_CURRENT_LIMIT, 100_000_000, a); ok && mw > 0 {
		h.PowerLimit = gpu.Some(float64(mw) / 1000)
	}
	h.ECC = f.mode(nvml.FI_DEV_ECC_CURRENT, nvml.FI_DEV_ECC_PENDING, a)

	const most = 1 << 20 // rows or pages; a card has some hundreds to spare
	pending, ok1 := f.upTo(nvml.FI_DEV_REMAPPED_PENDING, 1, a)
	failure, ok2 := f.upTo(nvml.FI_DEV_REMAPPED_FAILURE, 1, a)
	corrected, ok3 := f.upTo(nvml.FI_DEV_REMAPPED_COR, most, a)
	uncorrected, ok4 := f.upTo(nvml.FI_DEV_REMAPPED_UNC, most, a)
	if ok1 && ok2 && ok3 && ok4 {
		h.RowRemap = gpu.Some(gpu.RowRemap{Corrected: corrected, Uncorrected: uncorrected, Pending: pending != 0, Failure: failure != 0})
	}
	single, ok1 := f.upTo(nvml.FI_DEV_RETIRED_SBE, most, a)
	double, ok2 := f.upTo(nvml.FI_DEV_RETIRED_DBE, most, a)
	retiring, ok3 := f.upTo(nvml.FI_DEV_RETIRED_PENDING, 1, a)
	if ok1 && ok2 && ok3 {
		h.RetiredPages = gpu.Some(gpu.RetiredPages{SingleBit: single, DoubleBit: double, Pending: retiring != 0})
	}
	return h
}

// upTo returns a field that cannot be more than most; one that is, is noted.
func (f fieldValues) upTo(id uint32, most uint64, a *answers) (uint64, bool) {
	v, ok := f.get(id)
	if ok && v > most {
		a.garbage(fmt.Sprintf("nvmlDeviceGetFieldValues(%d)", id))
		return 0, false
	}
	return v, ok
}

// mode is a setting and what it will be after the next reset.
func (f fieldValues) mode(current, pending uint32, a *answers) gpu.Opt[gpu.Switch] {
	now, ok := f.upTo(current, 1, a)
	if !ok {
		return gpu.Opt[gpu.Switch]{}
	}
	later, ok := f.upTo(pending, 1, a)
	if !ok {
		later = now
	}
	return gpu.Some(gpu.Switch{Current: now != 0, Pending: later != 0})
}

// activeLinks counts the NVLinks that carry traffic or sleep.
func (f fieldValues) activeLinks(links int, a *answers) gpu.Opt[int] {
	active, known := 0, 0
	for link := range uint32(links) {
		v, ok := f[fieldKey{nvml.FI_DEV_NVLINK_GET_STATE, link}]
		if !ok {
			continue
		}
		known++
		switch v {
		case nvml.NVLINK_STATE_INACTIVE:
		case nvml.NVLINK_STATE_ACTIVE, nvml.NVLINK_STATE_SLEEP:
			active++
		default:
			a.garbage("nvmlDeviceGetFieldValues(165)")
			return gpu.Opt[int]{}
		}
	}
	if known == 0 {
		return gpu.Opt[int]{}
	}
	return gpu.Some(active)
}

// worstBER is the highest effective bit error ratio among the links.
func (f fieldValues) worstBER(links int) gpu.Opt[float64] {
	var worst gpu.Opt[float64]
	for link := range uint32(links) {
		if packed, ok := f[fieldKey{nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, link}]; ok {
			worst = gpu.Some(max(worst.Or(0), unpackBER(packed)))
		}
	}
	return worst
}

// unpackBER unpacks a bit error ratio: mantissa × 10^−exponent.
func unpackBER(packed uint64) float64 {
	mantissa, exponent := packed>>8&0xf, packed&0xff
	return float64(mantissa) * math.Pow10(-int(exponent))
}

// readMIGMode asks the cards that can be divided.
func readMIGMode(d nvml.Device, id gpu.Identity, h *gpu.Health, a *answers) {
	if before(id, "ampere") || id.Architecture.Or("") == "ada" {
		return
	}
	if current, pending, ret := d.GetMigMode(); a.ok("nvmlDeviceGetMigMode", ret) {
		h.MIG = gpu.Some(gpu.Switch{Current: current == nvml.DEVICE_MIG_ENABLE, Pending: pending == nvml.DEVICE_MIG_ENABLE})
	}
}

// readHealth asks for what is not a field value: one call each, and none that
// cannot apply to the card. The decisive ones come first.
func (l *Library) readHealth(d nvml.Device, id gpu.Identity, h *gpu.Health, a *answers) {
	readLinkStates(d, id, h, a)
	l.readMemoryRepair(d, id, h, a)
	readMIGMode(d, id, h, a)
	if !h.MIG.Or(gpu.Switch{}).Current { // a divided card reaches no other
		l.readFabric(d, id, h, a)
	}
	readLicense(d, id, h, a)
	readLink(d, id, h, a)
	if p, ret := d.GetPersistenceMode(); a.ok("nvmlDeviceGetPersistenceMode", ret) {
		h.Persistence = gpu.Some(p == nvml.FEATURE_ENABLED)
	}
	if m, ret := d.GetComputeMode(); a.ok("nvmlDeviceGetComputeMode", ret) {
		if name, ok := computeModes[m]; ok {
			h.ComputeMode = gpu.Some(name)
		} else {
			a.garbage("nvmlDeviceGetComputeMode")
		}
	}
	if r, ret := d.GetCurrentClocksThrottleReasons(); a.ok("nvmlDeviceGetCurrentClocksThrottleReasons", ret) && r != math.MaxUint64 {
		h.Throttle = gpu.Some(r)
	}
	l.readLimits(d, id, h, a)
}

// readLinkStates counts the NVLinks that are up where the driver (before 520)
// does not tell it as a field value. It is one call a link, so a card with many
// goes without.
func readLinkStates(d nvml.Device, id gpu.Identity, h *gpu.Health, a *answers) {
	const most = 6 // a V100
	links := linksOf(id)
	if h.NVLinksActive.IsSet() || links == 0 || links > most {
		return
	}
	active := 0
	for link := range links {
		state, ret := d.GetNvLinkState(link)
		if !a.ok("nvmlDeviceGetNvLinkState", ret) {
			return
		}
		if state == nvml.FEATURE_ENABLED {
			active++
		}
	}
	h.NVLinksActive = gpu.Some(active)
}

// readLink reads the PCIe link as it is now; a guest sees none.
func readLink(d nvml.Device, id gpu.Identity, h *gpu.Health, a *answers) {
	if guest(id) {
		return
	}
	if n, ret := d.GetCurrPcieLinkGeneration(); a.ok("nvmlDeviceGetCurrPcieLinkGeneration", ret) {
		h.PCIeGen = within(a, "nvmlDeviceGetCurrPcieLinkGeneration", n, 1, 16)
	}
	if n, ret := d.GetCurrPcieLinkWidth(); a.ok("nvmlDeviceGetCurrPcieLinkWidth", ret) {
		h.PCIeWidth = within(a, "nvmlDeviceGetCurrPcieLinkWidth", n, 1, 32)
	}
}

// readLimits reads what keeps the card slower than it could be.
func (l *Library) readLimits(d nvml.Device, id gpu.Identity, h *gpu.Health, a *answers) {
	if !h.PowerLimit.IsSet() { // older drivers do not have it as a field value
		if mw, ret := d.GetEnforcedPowerLimit(); a.ok("nvmlDeviceGetEnforcedPowerLimit", ret) && mw != math.MaxUint32 {
			h.PowerLimit = gpu.Some(float64(mw) / 1000)
		}
	}
	// Application clocks end with Hopper, and drivers are to lose them.
	if !since(id, "blackwell") && l.has("nvmlDeviceGetApplicationsClock") {
		if mhz, ret := d.GetApplicationsClock(nvml.CLOCK_SM); a.ok("nvmlDeviceGetApplicationsClock", ret) {
			h.SMClockLimit = within(a, "nvmlDeviceGetApplicationsClock", int(mhz), 1, 100_000)
		}
	}
	if p, ret := d.GetPerformanceState(); a.ok("nvmlDeviceGetPerformanceState", ret) && p != nvml.PSTATE_UNKNOWN {
		h.PState = within(a, "nvmlDeviceGetPerformanceState", int(p), 0, 15)
	}
}

var computeModes = map[nvml.ComputeMode]string{
	nvml.COMPUTEMODE_DEFAULT:           "default",
	nvml.COMPUTEMODE_EXCLUSIVE_THREAD:  "exclusive-thread",
	nvml.COMPUTEMODE_PROHIBITED:        "prohibited",
	nvml.COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive-process",
}
