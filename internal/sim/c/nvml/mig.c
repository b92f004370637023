// MIG, the reading side: modes, MIG devices, GPU and compute instances.
#include "nvml_sim.h"

#define NEEDS_MIG if (!flag_of(c.s, c.gpu, "mig.supported")) return NVML_ERROR_NOT_SUPPORTED

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
	GPU_CALL(current);
	NEEDS_MIG;
	if (!pending) return NVML_ERROR_INVALID_ARGUMENT;
	*current = flag_of(c.s, c.gpu, "mig.mode");
	*pending = lacks(c.s, c.gpu, "mig.pending") ? *current : flag_of(c.s, c.gpu, "mig.pending");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
	GPU_CALL(count);
	*count = flag_of(c.s, c.gpu, "mig.supported") ? (unsigned)number_of(c.s, c.gpu, "mig.max") : 0;
	return NVML_SUCCESS;
}

// Indexes may have holes: NOT_FOUND does not mean that no later one exists.
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig) {
	GPU_CALL(mig);
	NEEDS_MIG;
	if (index >= (unsigned)number_of(c.s, c.gpu, "mig.max") || index >= MAX_SLOTS) return NVML_ERROR_INVALID_ARGUMENT;
	if (!instance_of(c.s, c.gpu, (int)index).exists) return NVML_ERROR_NOT_FOUND;
	*mig = device_handle(c.gpu, (int)index);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is) {
	ANY_CALL(is);
	*is = c.slot >= 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *parent) {
	ANY_CALL(parent);
	if (c.slot < 0) return NVML_ERROR_INVALID_ARGUMENT;
	*parent = device_handle(c.gpu, -1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id) {
	ANY_CALL(id);
	if (c.slot < 0) return NVML_ERROR_INVALID_ARGUMENT;
	*id = instance_of(c.s, c.gpu, c.slot).gi;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id) {
	ANY_CALL(id);
	if (c.slot < 0) return NVML_ERROR_INVALID_ARGUMENT;
	*id = instance_of(c.s, c.gpu, c.slot).ci;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *a) {
	ANY_CALL(a);
	if (c.slot < 0) return NVML_ERROR_NOT_SUPPORTED;
	struct instance m = instance_of(c.s, c.gpu, c.slot);
	*a = (nvmlDeviceAttributes_t){
		.multiprocessorCount = m.sms, .sharedCopyEngineCount = m.slices, .sharedDecoderCount = m.slices / 2,
		.gpuInstanceSliceCount = m.slices, .computeInstanceSliceCount = m.ci_slices, .memorySizeMB = m.memory >> 20,
	};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *a) { return nvmlDeviceGetAttributes_v2(device, a); }
