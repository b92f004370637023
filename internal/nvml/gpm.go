//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// gpmRatios are the GPM metrics in percent, gpmRates those in MiB per second:
// means over the time between two samples.
var gpmRatios = []struct {
	id     nvml.GpmMetricId
	metric gpu.Metric
}{
	{nvml.GPM_METRIC_GRAPHICS_UTIL, gpu.GraphicsActive},
	{nvml.GPM_METRIC_SM_UTIL, gpu.SMActive},
	{nvml.GPM_METRIC_SM_OCCUPANCY, gpu.SMOccupancy},
	{nvml.GPM_METRIC_INTEGER_UTIL, gpu.IntActive},
	{nvml.GPM_METRIC_ANY_TENSOR_UTIL, gpu.TensorActive},
	{nvml.GPM_METRIC_DFMA_TENSOR_UTIL, gpu.TensorDFMA},
	{nvml.GPM_METRIC_HMMA_TENSOR_UTIL, gpu.TensorHMMA},
	{nvml.GPM_METRIC_DMMA_TENSOR_UTIL, gpu.TensorDMMA},
	{nvml.GPM_METRIC_IMMA_TENSOR_UTIL, gpu.TensorIMMA},
	{nvml.GPM_METRIC_DRAM_BW_UTIL, gpu.DRAMActive},
	{nvml.GPM_METRIC_FP64_UTIL, gpu.FP64Active},
	{nvml.GPM_METRIC_FP32_UTIL, gpu.FP32Active},
	{nvml.GPM_METRIC_FP16_UTIL, gpu.FP16Active},
}

var gpmRates = []struct {
	id     nvml.GpmMetricId
	metric gpu.Metric
}{
	{nvml.GPM_METRIC_PCIE_TX_PER_SEC, gpu.PCIeTx},
	{nvml.GPM_METRIC_PCIE_RX_PER_SEC, gpu.PCIeRx},
	{nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, gpu.NVLinkRx},
	{nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, gpu.NVLinkTx},
}

// gpmCounters are the GPM metrics that only grow, since reboot (drivers of
// NVML 13.2 and newer).
var gpmCounters = []struct {
	id      nvml.GpmMetricId
	counter gpu.Counter
}{
	{nvml.GPM_METRIC_SM_CYCLES_ELAPSED, gpu.SMCyclesElapsed},
	{nvml.GPM_METRIC_SM_CYCLES_ACTIVE, gpu.SMCyclesActive},
	{nvml.GPM_METRIC_MMA_CYCLES_ACTIVE, gpu.TensorCycles},
	{nvml.GPM_METRIC_DMMA_CYCLES_ACTIVE, gpu.TensorDFMACycles},
	{nvml.GPM_METRIC_HMMA_CYCLES_ACTIVE, gpu.TensorHMMACycles},
	{nvml.GPM_METRIC_IMMA_CYCLES_ACTIVE, gpu.TensorIMMACycles},
	{nvml.GPM_METRIC_DFMA_CYCLES_ACTIVE, gpu.DFMACycles},
	{nvml.GPM_METRIC_PCIE_TX, gpu.PCIeTxBytes},
	{nvml.GPM_METRIC_PCIE_RX, gpu.PCIeRxBytes},
	{nvml.GPM_METRIC_INTEGER_CYCLES_ACTIVE, gpu.IntCycles},
	{nvml.GPM_METRIC_FP64_CYCLES_ACTIVE, gpu.FP64Cycles},
	{nvml.GPM_METRIC_FP32_CYCLES_ACTIVE, gpu.FP32Cycles},
	{nvml.GPM_METRIC_FP16_CYCLES_ACTIVE, gpu.FP16Cycles},
}

const mebibyte = 1 << 20

// GPMSample is a buffer of the driver's activity counters at one time. It
// means something only beside another one of the same device.
type GPMSample struct {
	buffer nvml.GpmSample
	handle uintptr // what buffer points to
}

// NewGPMSample allocates a buffer; false where the driver has no GPM.
func (l *Library) NewGPMSample() (*GPMSample, bool) {
	if !l.has("nvmlGpmSampleAlloc") || !l.has("nvmlGpmSampleFree") {
		return nil, false
	}
	s, ret := l.api.GpmSampleAlloc()
	if ret != nvml.SUCCESS {
		return nil, false
	}
	return &GPMSample{buffer: s, handle: gpmHandle(s)}, true
}

// FreeGPMSample gives the buffer back.
func (l *Library) FreeGPMSample(s *GPMSample) {
	if s != nil && l.has("nvmlGpmSampleFree") {
		s.buffer.Free()
	}
}

// fill takes a sample of a whole GPU, or of GPU instance gi of it where gi >= 0.
func (l *Library) fill(s *GPMSample, d nvml.Device, gi int, a *answers) bool {
	if gi < 0 {
		return l.has("nvmlGpmSampleGet") && a.ok("nvmlGpmSampleGet", s.buffer.Get(d))
	}
	return l.has("nvmlGpmMigSampleGet") && a.ok("nvmlGpmMigSampleGet", s.buffer.MigGet(d, gi))
}

// GPMMeans adds the mean activity between two samples of a device to r.
func (l *Library) GPMMeans(from, to *GPMSample, r gpu.Readings) *gpu.Fault {
	return l.means(&gpmAsk{}, from, to, r)
}

// means is GPMMeans with the room for the question, 19 KB, given.
func (l *Library) means(ask *gpmAsk, from, to *GPMSample, r gpu.Readings) *gpu.Fault {
	for i, m := range gpmRatios {
		ask.metrics[i].id = uint32(m.id)
	}
	for i, m := range gpmRates {
		ask.metrics[len(gpmRatios)+i].id = uint32(m.id)
	}
	ask.count = uint32(len(gpmRatios) + len(gpmRates))
	if fault := l.fetch(ask, from, to); fault != nil {
		return fault
	}
	for i, m := range gpmRatios {
		if v, ok := ask.metrics[i].answered(); ok {
			if ratio, ok := percent(v); ok {
				r[m.metric] = ratio
			}
		}
	}
	for i, m := range gpmRates {
		if v, ok := ask.metrics[len(gpmRatios)+i].answered(); ok {
			r[m.metric] = v * mebibyte
		}
	}
	return nil
}

// gpmCounts adds the counters of one sample to c. The driver computes them
// from the second sample of a pair; giving it twice costs nothing.
func (l *Library) gpmCounts(s *GPMSample, c gpu.Counters) *gpu.Fault {
	ask := make([]nvml.GpmMetricId, len(gpmCounters))
	for i, m := range gpmCounters {
		ask[i] = m.id
	}
	values, fault := l.metrics(s, s, ask)
	if fault != nil {
		return fault
	}
	for i, m := range gpmCounters {
		if v, ok := values[i].answered(); ok {
			c[m.counter] = uint64(v)
		}
	}
	return nil
}

// readGPMCounts takes a sample of a device (gi < 0: the whole GPU) and adds its
// counters to c. It says whether the device has GPM at all.
func (l *Library) readGPMCounts(d nvml.Device, gi int, s *GPMSample, c gpu.Counters, a *answers) bool {
	if s == nil || !l.fill(s, d, gi, a) {
		return false
	}
	if fault := l.gpmCounts(s, c); fault != nil {
		a.add(*fault)
	}
	return true
}

// metrics asks for the ids in one call.
func (l *Library) metrics(from, to *GPMSample, ids []nvml.GpmMetricId) ([]gpmMetric, *gpu.Fault) {
	ask := &gpmAsk{count: uint32(len(ids))}
	for i, id := range ids {
		ask.metrics[i].id = uint32(id)
	}
	fault := l.fetch(ask, from, to)
	return ask.metrics[:len(ids)], fault
}
