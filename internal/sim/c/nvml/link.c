// PCIe and NVLink: state, speed, errors, traffic; the NVSwitch fabric.
#include "nvml_sim.h"

// A card that sleeps lowers its PCIe generation; that is not a fault.
unsigned pcie_generation(const struct call *c) {
	bool busy = rate_of(c, R_UTIL) > 0 || rate_of(c, R_SM) > 0;
	unsigned awake = (unsigned)number_of(c->s, c->gpu, "pcie.gen"), idle = (unsigned)number_of(c->s, c->gpu, "pcie.gen.idle");
	return busy || idle > awake ? awake : idle;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation) {
	GPU_CALL(generation);
	*generation = pcie_generation(&c);
	return NVML_SUCCESS;
}

#define NUMBER(function, key) \
	nvmlReturn_t function(nvmlDevice_t device, unsigned int *out) { \
		GPU_CALL(out); \
		NEEDS(key); \
		*out = (unsigned)number_of(c.s, c.gpu, key); \
		return NVML_SUCCESS; \
	}
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.gen.max")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.gen.card")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie.width.max")
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie.replay")
#undef NUMBER

static const unsigned mega_transfers[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};

nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int *speed) {
	GPU_CALL(speed);
	*speed = mega_transfers[pcie_generation(&c) % 7];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *kib) {
	GPU_CALL(kib);
	*kib = (unsigned)(rate_of(&c, counter == NVML_PCIE_UTIL_TX_BYTES ? R_PCIE_TX : R_PCIE_RX) / 1024);
	return NVML_SUCCESS;
}

#define NEEDS_LINK \
	if (number_of(c.s, c.gpu, "nvlinks") == 0) return NVML_ERROR_NOT_SUPPORTED; \
	if (link >= (unsigned)number_of(c.s, c.gpu, "nvlinks")) return NVML_ERROR_INVALID_ARGUMENT

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active) {
	GPU_CALL(active);
	NEEDS_LINK;
	*active = (nvmlEnableState_t)(number_at(c.s, c.gpu, "nvlink.%d.active", (int)link) != 0);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version) {
	GPU_CALL(version);
	NEEDS_LINK;
	*version = (unsigned)number_of(c.s, c.gpu, "nvlink.version");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t capability, unsigned int *result) {
	GPU_CALL(result);
	NEEDS_LINK;
	*result = capability != NVML_NVLINK_CAP_SLI_BRIDGE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link, nvmlNvLinkErrorCounter_t counter, unsigned long long *value) {
	GPU_CALL(value);
	NEEDS_LINK;
	static const char *const keys[] = {"nvlink.%d.replay", "nvlink.%d.recovery", "nvlink.%d.crc", "nvlink.%d.crc_data", "nvlink.%d.ecc"};
	if (counter >= NVML_NVLINK_ERROR_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	if (number_of(c.s, c.gpu, "nvlink.version") >= 5) return NVML_ERROR_NOT_SUPPORTED;
	*value = (unsigned long long)number_at(c.s, c.gpu, keys[counter], (int)link);
	return NVML_SUCCESS;
}

// With NVSwitches every link ends at one of them; else the links go to the other GPUs in turn.
static int peer(const struct call *c, unsigned link) {
	if (strcmp(text_of(c->s, c->gpu, "nvlink.remote"), "peers") || c->s->gpus < 2) return -1;
	int others = c->s->gpus - 1, k = (int)link % others;
	return k < c->gpu ? k : k + 1;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *type) {
	GPU_CALL(type);
	NEEDS_LINK;
	*type = peer(&c, link) < 0 ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
	GPU_CALL(pci);
	NEEDS_LINK;
	memset(pci, 0, sizeof *pci);
	int other = peer(&c, link);
	if (other >= 0) sscanf(text_of(c.s, other, "pci"), "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
	else pci->bus = 5 + link % 4;
	pci->pciDeviceId = other >= 0 ? (unsigned)number_of(c.s, other, "pci.device") << 16 | 0x10de : 0x22a310de;
	snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus, pci->device);
	snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
	return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci);
}

nvmlReturn_t nvmlDeviceGetNvLinkInfo(nvmlDevice_t device, nvmlNvLinkInfo_t *info) {
	GPU_CALL(info);
	if (info->version != nvmlNvLinkInfo_v1) NEEDS_VERSION(info->version, nvmlNvLinkInfo_v2);
	if (number_of(c.s, c.gpu, "nvlinks") == 0) return NVML_ERROR_NOT_SUPPORTED;
	info->isNvleEnabled = 0;
	return NVML_SUCCESS;
}

static void cluster_of(const struct call *c, unsigned char uuid[16]) {
	const char *text = text_of(c->s, c->gpu, "fabric.cluster");
	for (int i = 0; i < 16; i++, text += 2) {
		unsigned byte = 0;
		if (*text == '-') text++;
		sscanf(text, "%2x", &byte);
		uuid[i] = (unsigned char)byte;
	}
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info) {
	GPU_CALL(info);
	NEEDS("fabric.state");
	cluster_of(&c, info->clusterUuid);
	info->status = (nvmlReturn_t)number_of(c.s, c.gpu, "fabric.status");
	info->cliqueId = (unsigned)number_of(c.s, c.gpu, "fabric.clique");
	info->state = (nvmlGpuFabricState_t)number_of(c.s, c.gpu, "fabric.state");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info) {
	GPU_CALL(info);
	bool v3 = info->version == nvmlGpuFabricInfo_v3 && driver_major(&c) >= 570;
	if (!v3) NEEDS_VERSION(info->version, nvmlGpuFabricInfo_v2);
	NEEDS("fabric.state");
	cluster_of(&c, info->clusterUuid);
	info->status = (nvmlReturn_t)number_of(c.s, c.gpu, "fabric.status");
	info->cliqueId = (unsigned)number_of(c.s, c.gpu, "fabric.clique");
	info->state = (nvmlGpuFabricState_t)number_of(c.s, c.gpu, "fabric.state");
	info->healthMask = (unsigned)number_of(c.s, c.gpu, "fabric.health");
	if (v3) info->healthSummary = (unsigned char)number_of(c.s, c.gpu, "fabric.summary");
	return NVML_SUCCESS;
}
