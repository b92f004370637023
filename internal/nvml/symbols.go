//go:build cgo

package nvml

// alwaysPresent are the symbols called without asking first: every driver
// branch since 470 has them (testdata/nvml_exports_*.txt). go-nvml itself
// chooses the newest version of those with a suffix.
var alwaysPresent = []string{
	"nvmlInit_v2",
	"nvmlShutdown",
	"nvmlSystemGetDriverVersion",
	"nvmlSystemGetNVMLVersion",
	"nvmlSystemGetCudaDriverVersion",
	"nvmlDeviceGetCount_v2",
	"nvmlDeviceGetHandleByIndex_v2",
	"nvmlDeviceGetHandleByUUID",
	"nvmlDeviceGetUUID",
	"nvmlDeviceGetPciInfo_v3",
	"nvmlDeviceGetName",
	"nvmlDeviceGetSerial",
	"nvmlDeviceGetMinorNumber",
	"nvmlDeviceGetVbiosVersion",
	"nvmlDeviceGetArchitecture",
	"nvmlDeviceGetMaxPcieLinkGeneration",
	"nvmlDeviceGetMaxPcieLinkWidth",
	"nvmlDeviceGetMaxClockInfo",
	"nvmlDeviceGetFieldValues",
	"nvmlDeviceGetMigMode",
	"nvmlDeviceGetRowRemapperHistogram",
	"nvmlDeviceGetCurrPcieLinkGeneration",
	"nvmlDeviceGetCurrPcieLinkWidth",
	"nvmlDeviceGetPersistenceMode",
	"nvmlDeviceGetComputeMode",
	"nvmlDeviceGetCurrentClocksThrottleReasons",
	"nvmlDeviceGetEnforcedPowerLimit",
	"nvmlDeviceGetPowerUsage",
	"nvmlDeviceGetMemoryInfo",
	"nvmlDeviceGetComputeRunningProcesses_v2",
	"nvmlDeviceGetGraphicsRunningProcesses_v2",
	"nvmlDeviceGetUtilizationRates",
	"nvmlDeviceGetSamples",
	"nvmlDeviceGetTemperature",
	"nvmlDeviceGetClockInfo",
	"nvmlDeviceGetMaxMigDeviceCount",
	"nvmlDeviceGetMigDeviceHandleByIndex",
	"nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
	"nvmlDeviceGetGpuInstanceId",
	"nvmlDeviceGetComputeInstanceId",
}
