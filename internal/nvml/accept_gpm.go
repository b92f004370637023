//go:build cgo

package nvml

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// GPMState is what the driver says about GPM on one GPU before anybody asks
// for a sample.
type GPMState struct {
	Query     Result // of nvmlGpmQueryDeviceSupport
	Supported gpu.Opt[bool]
	Ask       Result // of nvmlGpmQueryIfStreamingEnabled
	Streaming gpu.Opt[bool]
}

// GPMState asks whether the GPU at index has GPM and whether it streams.
func (l *Library) GPMState(index int) (GPMState, *gpu.Fault) {
	s := GPMState{Query: Missing, Ask: Missing}
	d, _, fault := l.handle(index)
	if fault != nil {
		return s, fault
	}
	if l.has("nvmlGpmQueryDeviceSupport") {
		v, ret := d.GpmQueryDeviceSupport()
		if s.Query = resultOf(ret); ret == nvml.SUCCESS {
			s.Supported = gpu.Some(v.IsSupportedDevice != 0)
		}
	}
	if l.has("nvmlGpmQueryIfStreamingEnabled") {
		on, ret := d.GpmQueryIfStreamingEnabled()
		if s.Ask = resultOf(ret); ret == nvml.SUCCESS {
			s.Streaming = gpu.Some(on != 0)
		}
	}
	return s, nil
}

// SampleGPM takes a sample and says how the call was answered.
func (d *Device) SampleGPM(s *GPMSample) Result {
	if d.gi >= 0 {
		if !d.lib.has("nvmlGpmMigSampleGet") {
			return Missing
		}
		return resultOf(s.buffer.MigGet(d.parent, d.gi))
	}
	if !d.lib.has("nvmlGpmSampleGet") {
		return Missing
	}
	return resultOf(s.buffer.Get(d.handle))
}

// GPMMetric is one metric of a pair of samples, as the driver gave it.
type GPMMetric struct {
	ID     int
	Name   string
	Result Result
	Value  float64 // percent, MiB/s, cycles or bytes; may be NaN
}

// GPMMetrics returns the means between two samples, unfiltered.
func (l *Library) GPMMetrics(from, to *GPMSample) ([]GPMMetric, *gpu.Fault) {
	var ask []GPMMetric
	for _, m := range slices.Concat(gpmRatios, gpmRates) {
		ask = append(ask, GPMMetric{ID: int(m.id), Name: string(m.metric)})
	}
	return l.ask(from, to, ask)
}

// GPMTotals returns the cumulative metrics (248 to 260) of a sample, unfiltered.
func (l *Library) GPMTotals(s *GPMSample) ([]GPMMetric, *gpu.Fault) {
	var ask []GPMMetric
	for _, m := range gpmCounters {
		ask = append(ask, GPMMetric{ID: int(m.id), Name: string(m.counter)})
	}
	return l.ask(s, s, ask)
}

func (l *Library) ask(from, to *GPMSample, list []GPMMetric) ([]GPMMetric, *gpu.Fault) {
	ids := make([]nvml.GpmMetricId, len(list))
	for i, m := range list {
		ids[i] = nvml.GpmMetricId(m.ID)
	}
	values, fault := l.metrics(from, to, ids)
	if fault != nil {
		return nil, fault
	}
	for i, v := range values {
		list[i].Result, list[i].Value = resultOf(nvml.Return(v.result)), v.value
	}
	return list, nil
}
