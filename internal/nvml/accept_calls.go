//go:build cgo

package nvml

import (
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// Result is a return code by its name in nvml.h, without NVML_ERROR_.
type Result string

// The results that callers ask for by name.
const (
	Success      Result = "SUCCESS"
	NotSupported Result = "NOT_SUPPORTED"
	NoPermission Result = "NO_PERMISSION"
	Missing      Result = "MISSING" // the loaded library has no such function
)

var resultNames = map[nvml.Return]Result{
	nvml.SUCCESS: Success, nvml.ERROR_NOT_SUPPORTED: NotSupported, nvml.ERROR_NO_PERMISSION: NoPermission,
	nvml.ERROR_UNINITIALIZED: "UNINITIALIZED", nvml.ERROR_INVALID_ARGUMENT: "INVALID_ARGUMENT",
	nvml.ERROR_NOT_FOUND: "NOT_FOUND", nvml.ERROR_INSUFFICIENT_SIZE: "INSUFFICIENT_SIZE",
	nvml.ERROR_TIMEOUT: "TIMEOUT", nvml.ERROR_FUNCTION_NOT_FOUND: "FUNCTION_NOT_FOUND",
	nvml.ERROR_GPU_IS_LOST: "GPU_IS_LOST", nvml.ERROR_RESET_REQUIRED: "RESET_REQUIRED",
	nvml.ERROR_IN_USE: "IN_USE", nvml.ERROR_MEMORY: "MEMORY", nvml.ERROR_NO_DATA: "NO_DATA",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "ARGUMENT_VERSION_MISMATCH", nvml.ERROR_DEPRECATED: "DEPRECATED",
	nvml.ERROR_NOT_READY: "NOT_READY", nvml.ERROR_INVALID_STATE: "INVALID_STATE", nvml.ERROR_UNKNOWN: "UNKNOWN",
}

func resultOf(ret nvml.Return) Result {
	if name, ok := resultNames[ret]; ok {
		return name
	}
	return Result(fmt.Sprintf("code %d", int(ret)))
}

// CallResult is how the driver answered one call.
type CallResult struct {
	Call   string
	Result Result
	Time   time.Duration
}

// TryCalls makes once each call that a look or the sampler makes on a whole
// GPU, GPM aside, and says how it was answered. It is for `gpu-probe accept`:
// Read itself takes what a card does not support as unknown and says no more.
func (l *Library) TryCalls(index int) ([]CallResult, *gpu.Fault) {
	d, _, fault := l.handle(index)
	if fault != nil {
		return nil, fault
	}
	var out []CallResult
	try := func(call string, ask func() nvml.Return) {
		from := time.Now()
		ret := ask()
		out = append(out, CallResult{call, resultOf(ret), time.Since(from)})
	}
	tryIf := func(has bool, call string, ask func() nvml.Return) {
		if has {
			try(call, ask)
		} else {
			out = append(out, CallResult{Call: call, Result: Missing})
		}
	}
	try("nvmlDeviceGetUUID", func() nvml.Return { _, r := d.GetUUID(); return r })
	try("nvmlDeviceGetPciInfo", func() nvml.Return { _, r := d.GetPciInfo(); return r })
	try("nvmlDeviceGetName", func() nvml.Return { _, r := d.GetName(); return r })
	try("nvmlDeviceGetSerial", func() nvml.Return { _, r := d.GetSerial(); return r })
	try("nvmlDeviceGetMinorNumber", func() nvml.Return { _, r := d.GetMinorNumber(); return r })
	try("nvmlDeviceGetVbiosVersion", func() nvml.Return { _, r := d.GetVbiosVersion(); return r })
	try("nvmlDeviceGetArchitecture", func() nvml.Return { _, r := d.GetArchitecture(); return r })
	try("nvmlDeviceGetMaxPcieLinkGeneration", func() nvml.Return { _, r := d.GetMaxPcieLinkGeneration(); return r })
	try("nvmlDeviceGetMaxPcieLinkWidth", func() nvml.Return { _, r := d.GetMaxPcieLinkWidth(); return r })
	try("nvmlDeviceGetMaxClockInfo", func() nvml.Return { _, r := d.GetMaxClockInfo(nvml.CLOCK_SM); return r })
	try("nvmlDeviceGetInforomImageVersion", func() nvml.Return { _, r := d.GetInforomImageVersion(); return r })
	tryIf(l.has("nvmlDeviceGetGspFirmwareVersion"), "nvmlDeviceGetGspFirmwareVersion", func() nvml.Return { _, r := d.GetGspFirmwareVersion(); return r })
	try("nvmlDeviceGetVirtualizationMode", func() nvml.Return { _, r := d.GetVirtualizationMode(); return r })
	try("nvmlDeviceGetPowerManagementDefaultLimit", func() nvml.Return { _, r := d.GetPowerManagementDefaultLimit(); return r })
	try("nvmlDeviceGetTemperatureThreshold", func() nvml.Return { _, r := d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN); return r })
	try("nvmlDeviceGetMemoryAffinity", func() nvml.Return { _, r := d.GetMemoryAffinity(maxNUMA, nvml.AFFINITY_SCOPE_NODE); return r })
	try("nvmlDeviceGetCpuAffinity", func() nvml.Return { _, r := d.GetCpuAffinity(maxCPUs); return r })
	tryIf(l.has("nvmlDeviceGetUnrepairableMemoryFlag_v1"), "nvmlDeviceGetUnrepairableMemoryFlag_v1", func() nvml.Return { _, r := d.GetUnrepairableMemoryFlag_v1(); return r })
	tryIf(l.has("nvmlDeviceGetRepairStatus"), "nvmlDeviceGetRepairStatus", func() nvml.Return { _, r := d.GetRepairStatus(); return r })
	tryIf(l.has("nvmlDeviceGetGpuFabricInfoV"), "nvmlDeviceGetGpuFabricInfoV", func() nvml.Return { _, r := d.GetGpuFabricInfoV().V2(); return r })
	try("nvmlDeviceGetMigMode", func() nvml.Return { _, _, r := d.GetMigMode(); return r })
	try("nvmlDeviceGetRowRemapperHistogram", func() nvml.Return { _, r := d.GetRowRemapperHistogram(); return r })
	tryIf(l.has("nvmlDeviceGetSramEccErrorStatus"), "nvmlDeviceGetSramEccErrorStatus", func() nvml.Return { _, r := d.GetSramEccErrorStatus(); return r })
	try("nvmlDeviceGetCurrPcieLinkGeneration", func() nvml.Return { _, r := d.GetCurrPcieLinkGeneration(); return r })
	try("nvmlDeviceGetCurrPcieLinkWidth", func() nvml.Return { _, r := d.GetCurrPcieLinkWidth(); return r })
	try("nvmlDeviceGetPersistenceMode", func() nvml.Return { _, r := d.GetPersistenceMode(); return r })
	try("nvmlDeviceGetComputeMode", func() nvml.Return { _, r := d.GetComputeMode(); return r })
	try("nvmlDeviceGetCurrentClocksThrottleReasons", func() nvml.Return { _, r := d.GetCurrentClocksThrottleReasons(); return r })
	tryIf(l.has("nvmlDeviceGetApplicationsClock"), "nvmlDeviceGetApplicationsClock", func() nvml.Return { _, r := d.GetApplicationsClock(nvml.CLOCK_SM); return r })
	try("nvmlDeviceGetPerformanceState", func() nvml.Return { _, r := d.GetPerformanceState(); return r })
	try("nvmlDeviceGetEnforcedPowerLimit", func() nvml.Return { _, r := d.GetEnforcedPowerLimit(); return r })
	try("nvmlDeviceGetPowerUsage", func() nvml.Return { _, r := d.GetPowerUsage(); return r })
	try("nvmlDeviceGetMemoryInfo", func() nvml.Return { _, r := d.GetMemoryInfo(); return r })
	tryIf(l.has("nvmlDeviceGetMemoryInfo_v2"), "nvmlDeviceGetMemoryInfo_v2", func() nvml.Return { _, r := d.GetMemoryInfo_v2(); return r })
	try("nvmlDeviceGetComputeRunningProcesses", func() nvml.Return { _, r := d.GetComputeRunningProcesses(); return r })
	try("nvmlDeviceGetGraphicsRunningProcesses", func() nvml.Return { _, r := d.GetGraphicsRunningProcesses(); return r })
	try("nvmlDeviceGetUtilizationRates", func() nvml.Return { _, r := d.GetUtilizationRates(); return r })
	try("nvmlDeviceGetSamples", func() nvml.Return { _, _, r := d.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, 0); return r })
	try("nvmlDeviceGetTemperature", func() nvml.Return { _, r := d.GetTemperature(nvml.TEMPERATURE_GPU); return r })
	tryIf(l.has("nvmlDeviceGetMarginTemperature"), "nvmlDeviceGetMarginTemperature", func() nvml.Return { _, r := d.GetMarginTemperature(); return r })
	try("nvmlDeviceGetClockInfo", func() nvml.Return { _, r := d.GetClockInfo(nvml.CLOCK_SM); return r })
	tryIf(l.has("nvmlDeviceGetAccountingMode"), "nvmlDeviceGetAccountingMode", func() nvml.Return { _, r := d.GetAccountingMode(); return r })
	return out, nil
}

// FieldResult is how the driver answered for one field value.
type FieldResult struct {
	ID     uint32
	Name   string // of the counter it feeds; "" for a state
	Result Result
}

// TryFields asks for each field value of a look, per-link ones for link 0.
func (l *Library) TryFields(index int) ([]FieldResult, *gpu.Fault) {
	d, _, fault := l.handle(index)
	if fault != nil {
		return nil, fault
	}
	var out []FieldResult
	for _, id := range stateFields {
		out = append(out, FieldResult{ID: id})
	}
	for _, f := range counterFields {
		out = append(out, FieldResult{ID: f.id, Name: string(f.counter)})
	}
	for _, f := range sramFields {
		out = append(out, FieldResult{ID: f.total, Name: string(f.sram)})
	}
	for _, f := range slices.Concat(linkFields, linkFields5[1:]) {
		out = append(out, FieldResult{ID: f.id, Name: string(f.counter)})
	}
	ask := make([]nvml.FieldValue, len(out))
	for i := range out {
		ask[i].FieldId = out[i].ID
	}
	if ret := d.GetFieldValues(ask); ret != nvml.SUCCESS {
		f := newFault("nvmlDeviceGetFieldValues", ret)
		return nil, &f
	}
	for i := range out {
		out[i].Result = resultOf(nvml.Return(ask[i].NvmlReturn))
	}
	return out, nil
}

// Accounting is the driver's own accounting of processes, as it was found.
type Accounting struct {
	Enabled gpu.Opt[bool]
	Buffer  gpu.Opt[int] // processes it keeps
}

// Accounting reads the accounting mode of the GPU at index.
func (l *Library) Accounting(index int) (Accounting, *gpu.Fault) {
	var out Accounting
	d, _, fault := l.handle(index)
	if fault != nil {
		return out, fault
	}
	if l.has("nvmlDeviceGetAccountingMode") {
		if mode, ret := d.GetAccountingMode(); ret == nvml.SUCCESS {
			out.Enabled = gpu.Some(mode == nvml.FEATURE_ENABLED)
		}
	}
	if l.has("nvmlDeviceGetAccountingBufferSize") {
		if n, ret := d.GetAccountingBufferSize(); ret == nvml.SUCCESS {
			out.Buffer = gpu.Some(n)
		}
	}
	return out, nil
}
