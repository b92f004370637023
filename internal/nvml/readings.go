//go:build cgo

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// memory is what nvmlDeviceGetMemoryInfo tells, in bytes.
type memory struct{ total, used uint64 }

// readMemory reads a device's memory. Version 2 tells what the driver reserves
// apart from what is in use; version 1, on old drivers, counts it as used.
func (l *Library) readMemory(d nvml.Device, a *answers) (memory, bool) {
	var m memory
	if l.has("nvmlDeviceGetMemoryInfo_v2") {
		v, ret := d.GetMemoryInfo_v2()
		if !a.ok("nvmlDeviceGetMemoryInfo_v2", ret) {
			return m, false
		}
		m = memory{total: v.Total, used: v.Used}
	} else {
		v, ret := d.GetMemoryInfo()
		if !a.ok("nvmlDeviceGetMemoryInfo", ret) {
			return m, false
		}
		m = memory{total: v.Total, used: v.Used}
	}
	if m.total == 0 || m.total > 1<<50 || m.used > m.total {
		a.garbage("nvmlDeviceGetMemoryInfo")
		return memory{}, false
	}
	return m, true
}

// readUtilization reads GPU-Util. On MIG the driver does not have it.
func readUtilization(d nvml.Device, r gpu.Readings, a *answers) {
	u, ret := d.GetUtilizationRates()
	if !a.ok("nvmlDeviceGetUtilizationRates", ret) {
		return
	}
	if v, ok := percent(float64(u.Gpu)); ok {
		r[gpu.Utilization] = v
	} else {
		a.garbage("nvmlDeviceGetUtilizationRates")
	}
	if v, ok := percent(float64(u.Memory)); ok {
		r[gpu.MemUtilization] = v
	}
}

// readTemperature reads the GPU's temperature.
func readTemperature(d nvml.Device, r gpu.Readings, a *answers) {
	if t, ret := d.GetTemperature(nvml.TEMPERATURE_GPU); a.ok("nvmlDeviceGetTemperature", ret) {
		if t < 200 {
			r[gpu.Temperature] = float64(t)
		} else {
			a.garbage("nvmlDeviceGetTemperature")
		}
	}
}

// readFan reads the speed of the card's own fan. Cards that the chassis cools
// have none.
func readFan(d nvml.Device, id gpu.Identity, r gpu.Readings, a *answers) {
	if !id.Fan.Or(false) {
		return
	}
	speed, ret := d.GetFanSpeed()
	if !a.ok("nvmlDeviceGetFanSpeed", ret) {
		return
	}
	if v, ok := percent(float64(speed)); ok {
		r[gpu.FanSpeed] = v
	}
}

// readMargin reads how far the GPU is from its slowdown limit. Cards before Ada
// and Hopper do not tell.
func (l *Library) readMargin(d nvml.Device, id gpu.Identity, r gpu.Readings, a *answers) {
	if before(id, "ada") || !l.has("nvmlDeviceGetMarginTemperature") {
		return
	}
	if m, ret := d.GetMarginTemperature(); a.ok("nvmlDeviceGetMarginTemperature", ret) && m.MarginTemperature > -200 && m.MarginTemperature < 200 {
		r[gpu.TempMargin] = float64(m.MarginTemperature)
	}
}

// readSMClock reads the present SM clock.
func readSMClock(d nvml.Device, r gpu.Readings, a *answers) {
	if mhz, ret := d.GetClockInfo(nvml.CLOCK_SM); a.ok("nvmlDeviceGetClockInfo", ret) {
		if mhz < 100_000 {
			r[gpu.SMClock] = float64(mhz)
		} else {
			a.garbage("nvmlDeviceGetClockInfo")
		}
	}
}

// readPower reads the power drawn, where it did not come as a field value.
func readPower(d nvml.Device, r gpu.Readings, a *answers) {
	if _, known := r[gpu.Power]; known {
		return
	}
	if mw, ret := d.GetPowerUsage(); a.ok("nvmlDeviceGetPowerUsage", ret) && mw != math.MaxUint32 {
		r[gpu.Power] = float64(mw) / 1000
	}
}

// readings are the field values that go up and down.
func (f fieldValues) readings(r gpu.Readings) {
	if mw, ok := f.get(nvml.FI_DEV_POWER_AVERAGE); ok {
		r[gpu.Power] = float64(mw) / 1000
	}
	if t, ok := f.get(nvml.FI_DEV_MEMORY_TEMP); ok && t > 0 && t < 200 {
		r[gpu.MemTemperature] = float64(t)
	}
}
