// Calls versioned functions with a wrong version and prints what they answer:
// the Go binding always sends the right one.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;
#define CALL(function) ((__typeof__(&function))dlsym(library, #function))
#define TRY(function, type) { type x = {0}; x.version = 0x7000001; printf("%d ", CALL(function)(device, &x)); }

int main(int argc, char **argv) {
	nvmlDevice_t device;
	nvmlGpmMetricsGet_t *get = calloc(1, sizeof *get);
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library || CALL(nvmlInit_v2)() || CALL(nvmlDeviceGetHandleByIndex_v2)(0, &device)) return 1;
	TRY(nvmlDeviceGetMemoryInfo_v2, nvmlMemory_v2_t)
	TRY(nvmlDeviceGetSramEccErrorStatus, nvmlEccSramErrorStatus_t)
	TRY(nvmlDeviceGetMarginTemperature, nvmlMarginTemperature_t)
	TRY(nvmlDeviceGetTemperatureV, nvmlTemperature_t)
	TRY(nvmlDeviceGetGpuFabricInfoV, nvmlGpuFabricInfoV_t)
	TRY(nvmlDeviceGetPciInfoExt, nvmlPciInfoExt_t)
	TRY(nvmlDeviceGetPlatformInfo, nvmlPlatformInfo_t)
	TRY(nvmlDeviceGetRepairStatus, nvmlRepairStatus_t)
	TRY(nvmlGpmQueryDeviceSupport, nvmlGpmSupport_t)
	get->version = 2;
	printf("%d\n", CALL(nvmlGpmMetricsGet)(get));
	return 0;
}
