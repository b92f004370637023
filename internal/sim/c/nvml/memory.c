// Memory in use: the scenario's own, and that of every workload.
#include "nvml_sim.h"

uint64_t memory_used(const struct call *c) {
	struct state *st = call_state(c);
	state_reap(st);
	uint64_t used = state_memory(st, c->gpu, c->slot);
	done_with(st);
	return c->slot < 0 ? used + (uint64_t)number_of(c->s, c->gpu, "memory.used") : used;
}

static void totals(const struct call *c, uint64_t *total, uint64_t *reserved, uint64_t *used) {
	*total = (uint64_t)number_of(c->s, c->gpu, "memory.total");
	*reserved = (uint64_t)number_of(c->s, c->gpu, "memory.reserved");
	if (c->slot >= 0) {
		struct instance m = instance_of(c->s, c->gpu, c->slot);
		*reserved = *reserved * m.memory / *total;
		*total = m.memory;
	}
	*used = memory_used(c);
	if (*used > *total - *reserved) *used = *total - *reserved;
}

// Version 1 counts what the driver reserves as used; version 2 tells it apart.
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
	ANY_CALL(memory);
	uint64_t total, reserved, used;
	totals(&c, &total, &reserved, &used);
	*memory = (nvmlMemory_t){.total = total, .used = used + reserved, .free = total - used - reserved};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
	ANY_CALL(memory);
	NEEDS_VERSION(memory->version, nvmlMemory_v2);
	uint64_t total, reserved, used;
	totals(&c, &total, &reserved, &used);
	memory->total = total;
	memory->reserved = reserved;
	memory->used = used;
	memory->free = total - used - reserved;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar1) {
	ANY_CALL(bar1);
	bar1->bar1Total = (unsigned long long)number_of(c.s, c.gpu, "bar1.total");
	bar1->bar1Used = 1 << 20;
	bar1->bar1Free = bar1->bar1Total - bar1->bar1Used;
	return NVML_SUCCESS;
}
