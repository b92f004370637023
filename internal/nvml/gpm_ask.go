//go:build cgo

package nvml

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>

// Returns 13, function not found, where the driver has no such call.
static int gpm_metrics_get(void *ask) {
	int (*get)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "nvmlGpmMetricsGet");
	return get ? get(ask) : 13;
}
*/
import "C"

import (
	"reflect"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// gpmMetric and gpmAsk are nvmlGpmMetric_t and nvmlGpmMetricsGet_t as C has
// them. At each call the binding copies the 19 KB of a question into new memory
// and back: most of what a sampler allocated, 2 MB more of it resident. What
// points to C's memory is a plain number here: the runtime looks for no pointers.
type gpmMetric struct {
	id     uint32
	result int32
	value  float64
	info   [3]uintptr // short name, long name, unit
}

type gpmAsk struct {
	version, count   uint32
	sample1, sample2 uintptr
	metrics          [maxGPMMetrics]gpmMetric
}

// maxGPMMetrics is NVML_GPM_METRIC_MAX of the binding's nvml.h; a test compares.
const maxGPMMetrics = 477

// gpmHandle is the pointer in a sample of the binding, which does not export it.
func gpmHandle(s nvml.GpmSample) uintptr {
	return reflect.Indirect(reflect.ValueOf(s)).FieldByName("Handle").Pointer()
}

// fetch asks for all metrics in one call.
func (l *Library) fetch(ask *gpmAsk, from, to *GPMSample) *gpu.Fault {
	if !l.has("nvmlGpmMetricsGet") {
		return &gpu.Fault{Call: "nvmlGpmMetricsGet", Code: int(nvml.ERROR_FUNCTION_NOT_FOUND), Kind: gpu.FaultOther}
	}
	ask.version, ask.sample1, ask.sample2 = nvml.GPM_METRICS_GET_VERSION, from.handle, to.handle
	if ret := nvml.Return(C.gpm_metrics_get(unsafe.Pointer(ask))); ret != nvml.SUCCESS {
		f := newFault("nvmlGpmMetricsGet", ret)
		return &f
	}
	return nil
}

// answered returns a metric's value where the driver gave one: each has its
// own return code, and an idle GPU may answer NaN.
func (m gpmMetric) answered() (float64, bool) {
	return m.value, nvml.Return(m.result) == nvml.SUCCESS && plausible(m.value)
}
