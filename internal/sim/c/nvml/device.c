// Which GPUs there are and what they are.
#include "nvml_sim.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
	NODE_CALL(count);
	if (!count) return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	while (gpu_of_index(c.s, *count) >= 0) ++*count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *count) {
	NODE_CALL(count);
	if (!count) return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

// A lost GPU is noticed when its handle is asked for. Faults and counts of one
// GPU's handle call are those of the function on that GPU.
static nvmlReturn_t handle_answer(const char *function, int gpu, int slot, nvmlDevice_t *device) {
	if (gpu < 0) return NVML_ERROR_NOT_FOUND;
	nvmlDevice_t found = device_handle(gpu, slot);
	struct call c __attribute__((cleanup(call_close)));
	call_open(&c, function, &found, false, device, sizeof *device);
	if (c.answered) return c.ret;
	*device = found;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
	int gpu;
	{
		const struct scenario *s = initialised() ? scenario_acquire() : NULL;
		gpu = s ? gpu_of_index(s, index) : -1;
		scenario_release(s);
	}
	if (!device) return NVML_ERROR_INVALID_ARGUMENT;
	if (gpu >= 0) return handle_answer(__func__, gpu, -1, device);
	NODE_CALL(device);
	return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) {
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static bool same_pci(const char *a, const char *b) {
	unsigned d1, b1, v1, d2, b2, v2;
	return sscanf(a, "%x:%x:%x", &d1, &b1, &v1) == 3 && sscanf(b, "%x:%x:%x", &d2, &b2, &v2) == 3 &&
	       d1 == d2 && b1 == b2 && v1 == v2;
}

// The GPU, or the MIG device of it, whose key has this value.
static nvmlReturn_t handle_by(const char *function, const char *key, const char *value, nvmlDevice_t *device) {
	if (!value || !device) return NVML_ERROR_INVALID_ARGUMENT;
	const struct scenario *s = initialised() ? scenario_acquire() : NULL;
	int gpu = -1, slot = -1;
	for (int g = 0; s && g < s->gpus && gpu < 0; g++) {
		if (flag_of(s, g, "absent")) continue;
		const char *have = text_of(s, g, key);
		if (!strcmp(key, "pci") ? same_pci(have, value) : !strcmp(have, value)) gpu = g;
		for (int i = 0; gpu < 0 && !strcmp(key, "uuid") && i < MAX_SLOTS; i++) {
			struct instance m = instance_of(s, g, i);
			if (m.exists && !strcmp(m.uuid, value)) { gpu = g; slot = i; }
		}
	}
	scenario_release(s);
	if (gpu >= 0) return handle_answer(function, gpu, slot, device);
	CALL_(NULL, false, device, sizeof *device);
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) { return handle_by(__func__, "uuid", uuid, device); }
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) { return handle_by(__func__, "serial", serial, device); }
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvmlDevice_t *device) { return handle_by(__func__, "pci", pci, device); }
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pci, nvmlDevice_t *device) { return handle_by("nvmlDeviceGetHandleByPciBusId", "pci", pci, device); }

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
	ANY_CALL(index);
	*index = (unsigned)index_of_gpu(c.s, c.gpu);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
	CALL_(&device, false, name, length);
	char text[160];
	snprintf(text, sizeof text, "%s", text_of(c.s, c.gpu, "name"));
	if (c.slot >= 0) {
		struct instance m = instance_of(c.s, c.gpu, c.slot);
		snprintf(text, sizeof text, "%s MIG %s", text_of(c.s, c.gpu, "name"), m.profile);
	}
	return answer_text(text, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
	CALL_(&device, false, uuid, length);
	if (c.slot >= 0) return answer_text(instance_of(c.s, c.gpu, c.slot).uuid, uuid, length);
	return answer_text(text_of(c.s, c.gpu, "uuid"), uuid, length);
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device) {
	if (!uuid) return NVML_ERROR_INVALID_ARGUMENT;
	NEEDS_VERSION(uuid->version, nvmlUUID_v1);
	return handle_by(__func__, "uuid", uuid->value.str, device);
}

#define TEXT(function, key) \
	nvmlReturn_t function(nvmlDevice_t device, char *out, unsigned int length) { \
		CALL_(&device, true, out, length); \
		NEEDS(key); \
		return answer_text(text_of(c.s, c.gpu, key), out, length); \
	}
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetBoardPartNumber, "part")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetInforomImageVersion, "inforom")

#define NUMBER(function, type, key) \
	nvmlReturn_t function(nvmlDevice_t device, type *out) { \
		GPU_CALL(out); \
		NEEDS(key); \
		*out = (type)number_of(c.s, c.gpu, key); \
		return NVML_SUCCESS; \
	}
NUMBER(nvmlDeviceGetBrand, nvmlBrandType_t, "brand")
NUMBER(nvmlDeviceGetModuleId, unsigned int, "module_id")
NUMBER(nvmlDeviceGetNumGpuCores, unsigned int, "cores")
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned int, "memory.bus_width")
NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, "persistence")
NUMBER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, "compute_mode")
NUMBER(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, "virtualization")
NUMBER(nvmlDeviceGetFanSpeed, unsigned int, "fan")
#undef NUMBER

#define FIXED(function, type, value) \
	nvmlReturn_t function(nvmlDevice_t device, type *out) { \
		GPU_CALL(out); \
		*out = value; \
		return NVML_SUCCESS; \
	}
FIXED(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
FIXED(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
FIXED(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
FIXED(nvmlDeviceGetBusType, nvmlBusType_t, NVML_BUS_TYPE_PCIE)
FIXED(nvmlDeviceGetPowerSource, nvmlPowerSource_t, NVML_POWER_SOURCE_AC)
FIXED(nvmlDeviceGetIrqNum, unsigned int, 100 + (unsigned)c.gpu)

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
	GPU_CALL(minor);
	*minor = (unsigned)number_of(c.s, c.gpu, "minor");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch) {
	ANY_CALL(arch);
	*arch = (nvmlDeviceArchitecture_t)number_of(c.s, c.gpu, "architecture");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
	ANY_CALL(major);
	if (!minor) return NVML_ERROR_INVALID_ARGUMENT;
	*major = *minor = 0;
	sscanf(text_of(c.s, c.gpu, "capability"), "%d.%d", major, minor);
	return NVML_SUCCESS;
}

static void pci_address(const struct call *c, unsigned *domain, unsigned *bus, unsigned *device) {
	*domain = *bus = *device = 0;
	sscanf(text_of(c->s, c->gpu, "pci"), "%x:%x:%x", domain, bus, device);
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *id) {
	GPU_CALL(id);
	unsigned domain, bus, dev;
	pci_address(&c, &domain, &bus, &dev);
	*id = domain << 16 | bus << 8 | dev;
	return NVML_SUCCESS;
}

static void fill_pci(const struct call *c, nvmlPciInfo_t *pci) {
	memset(pci, 0, sizeof *pci);
	pci_address(c, &pci->domain, &pci->bus, &pci->device);
	snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
	snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
	pci->pciDeviceId = (unsigned)number_of(c->s, c->gpu, "pci.device") << 16 | 0x10de;
	pci->pciSubSystemId = (unsigned)number_of(c->s, c->gpu, "pci.subsystem");
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
	ANY_CALL(pci);
	fill_pci(&c, pci);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci) {
	GPU_CALL(pci);
	NEEDS_VERSION(pci->version, nvmlPciInfoExt_v1);
	nvmlPciInfo_t p;
	fill_pci(&c, &p);
	pci->domain = p.domain;
	pci->bus = p.bus;
	pci->device = p.device;
	pci->pciDeviceId = p.pciDeviceId;
	pci->pciSubSystemId = p.pciSubSystemId;
	pci->baseClass = 3;
	pci->subClass = 2;
	strcpy(pci->busId, p.busId);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version) {
	CALL_(&device, true, version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
	NEEDS("gsp");
	return answer_text(text_of(c.s, c.gpu, "gsp"), version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *enabled, unsigned int *byDefault) {
	GPU_CALL(enabled);
	*enabled = !lacks(c.s, c.gpu, "gsp");
	if (byDefault) *byDefault = 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device) {
	CALL_(&device, true, NULL, 0);
	return flag_of(c.s, c.gpu, "inforom.valid") ? NVML_SUCCESS : NVML_ERROR_CORRUPTED_INFOROM;
}

nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_t *info) {
	GPU_CALL(info);
	if (info->version != nvmlPlatformInfo_v2) NEEDS_VERSION(info->version, nvmlPlatformInfo_v1);
	NEEDS("module_id");
	info->moduleId = (unsigned char)number_of(c.s, c.gpu, "module_id");
	return NVML_SUCCESS;
}
