//go:build cgo

package nvml

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// Energy reads the energy counter alone, in millijoules.
func (d *Device) Energy() (uint64, bool) { return d.field(nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION) }

// PowerNow reads the power in milliwatts: the momentary one where the card
// tells it apart, else the average of its last second.
func (d *Device) PowerNow() (uint64, bool) {
	if mw, ok := d.field(nvml.FI_DEV_POWER_INSTANT); ok {
		return mw, true
	}
	return d.field(nvml.FI_DEV_POWER_AVERAGE)
}

func (d *Device) field(id uint32) (uint64, bool) {
	ask := []nvml.FieldValue{{FieldId: id}}
	if d.handle.GetFieldValues(ask) != nvml.SUCCESS {
		return 0, false
	}
	return decode(ask[0])
}

// throttleCounters are the times for which clocks were held back: field values
// 74 to 81 and 269 to 271.
var throttleCounters = []gpu.Counter{
	gpu.ThrottlePowerCap, gpu.ThrottleThermal, gpu.ThrottleSyncBoost, gpu.ThrottleBoard, gpu.ThrottleLowUtil,
	gpu.ThrottleReliab, gpu.ThrottleAppClocks, gpu.ThrottleBaseClocks,
	gpu.ThrottleSWThermal, gpu.ThrottleHWThermal, gpu.ThrottleHWBrake,
}

// ThrottleCounters names the counters that Throttle may return.
func ThrottleCounters() []gpu.Counter { return slices.Clone(throttleCounters) }

// Throttle reads the throttle counters that the card has, in nanoseconds.
func (d *Device) Throttle() gpu.Counters {
	var ask []nvml.FieldValue
	for _, f := range counterFields {
		if slices.Contains(throttleCounters, f.counter) {
			ask = append(ask, nvml.FieldValue{FieldId: f.id})
		}
	}
	c := gpu.Counters{}
	if d.handle.GetFieldValues(ask) != nvml.SUCCESS {
		return c
	}
	for _, f := range counterFields {
		for _, v := range ask {
			if n, ok := decode(v); ok && v.FieldId == f.id {
				c[f.counter] = n
			}
		}
	}
	return c
}

// RingEntry is one entry of the driver's ring of utilisation samples.
type RingEntry struct {
	Time  time.Time
	Ratio float64
}

// UtilizationRing reads the driver's ring of GPU-Util samples, oldest first.
func (d *Device) UtilizationRing() ([]RingEntry, Result) {
	kind, samples, ret := d.handle.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, 0)
	if ret != nvml.SUCCESS {
		return nil, resultOf(ret)
	}
	var out []RingEntry
	for _, s := range samples {
		if s.TimeStamp == 0 || kind != nvml.VALUE_TYPE_UNSIGNED_INT {
			continue
		}
		if v, ok := percent(float64(binary.NativeEndian.Uint32(s.SampleValue[:]))); ok {
			out = append(out, RingEntry{time.UnixMicro(int64(s.TimeStamp)), v})
		}
	}
	slices.SortFunc(out, func(a, b RingEntry) int { return a.Time.Compare(b.Time) })
	return out, Success
}
