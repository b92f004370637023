// Where the GPUs are: NUMA nodes, CPUs, paths between them.
#include "nvml_sim.h"

#include <stdlib.h>

static int numa(const struct call *c, int gpu) { return (int)number_of(c->s, gpu, "numa"); }

// Of the card's own memory, where the system has made a node of it; not the node that it is near to.
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node) {
	GPU_CALL(node);
	return NVML_ERROR_NOT_SUPPORTED;
}

// "0-3,8": the bits of a CPU list.
static void cpu_bits(const char *list, unsigned int words, unsigned long *set) {
	memset(set, 0, words * sizeof *set);
	while (*list) {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = from;
		if (end == list) return;
		if (*end == '-') to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < words * 64; from++) set[from / 64] |= 1ul << from % 64;
		list = *end == ',' ? end + 1 : end;
	}
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set) {
	GPU_CALL(set);
	cpu_bits(text_of(c.s, c.gpu, "cpus"), words, set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words, unsigned long *set, nvmlAffinityScope_t scope) {
	GPU_CALL(set);
	(void)scope;
	cpu_bits(text_of(c.s, c.gpu, "cpus"), words, set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set, nvmlAffinityScope_t scope) {
	GPU_CALL(set);
	(void)scope;
	if (numa(&c, c.gpu) < 0) return NVML_ERROR_NOT_SUPPORTED;
	char node[16];
	snprintf(node, sizeof node, "%d", numa(&c, c.gpu));
	cpu_bits(node, words, set);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuTopologyLevel_t *level) {
	GPU_CALL(level);
	if (!other.handle) return NVML_ERROR_INVALID_ARGUMENT;
	*level = numa(&c, c.gpu) == numa(&c, other.handle->gpu) ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *status) {
	GPU_CALL(status);
	(void)other;
	bool nvlink = number_of(c.s, c.gpu, "nvlinks") > 0;
	*status = nvlink || index != NVML_P2P_CAPS_INDEX_NVLINK ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device, nvmlDevice_t other, int *same) {
	GPU_CALL(same);
	*same = other.handle == device.handle;
	return NVML_SUCCESS;
}
