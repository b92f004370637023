// Who is on a GPU: the workloads of gpu-sim and what the scenario adds.
#include "nvml_sim.h"

#include <stdlib.h>

enum { MOST = 256 };
struct found { unsigned pid, gi, ci; unsigned long long memory; };

#define NO_INSTANCE 0xFFFFFFFFu

static int of_loads(const struct call *c, bool graphics, struct found *out) {
	int n = 0;
	struct state *st = call_state(c);
	state_reap(st);
	for (int i = 0; i < st->loads; i++) {
		const struct load *l = &st->load[i];
		if (!l->pid || l->graphics != graphics) continue;
		uint32_t target = l->target[c->gpu];
		if (target & WHOLE && c->slot < 0 && n < MOST) out[n++] = (struct found){(unsigned)l->pid, NO_INSTANCE, NO_INSTANCE, l->memory};
		for (int k = 0; k < MAX_SLOTS; k++) {
			if (!(target >> k & 1) || (c->slot >= 0 && c->slot != k) || n == MOST) continue;
			struct instance m = instance_of(c->s, c->gpu, k);
			out[n++] = (struct found){(unsigned)l->pid, m.gi, m.ci, l->memory};
		}
	}
	done_with(st);
	return n;
}

static int of_scenario(const struct call *c, bool graphics, struct found *out, int n) {
	for (unsigned i = 0; c->slot < 0 && i <= c->s->mask; i++) {
		const struct entry *e = &c->s->table[i];
		if (!e->name || (e->gpu != c->gpu && e->gpu != EVERY_GPU) || strncmp(e->name, "process.", 8) || e->none) continue;
		if (graphics != (strstr(e->text, "type=graphics") != NULL) || n == MOST) continue;
		const char *memory = strstr(e->text, "memory=");
		out[n++] = (struct found){(unsigned)atoi(e->name + 8), NO_INSTANCE, NO_INSTANCE, memory ? (unsigned long long)scenario_parse_number(memory + 7) : 0};
	}
	return n;
}

// Answers the count, and INSUFFICIENT_SIZE only when the room is really too small.
static nvmlReturn_t list(const struct call *c, bool graphics, unsigned int *count, struct found *out) {
	int n = of_scenario(c, graphics, out, of_loads(c, graphics, out));
	unsigned room = *count;
	*count = (unsigned)n;
	return room < (unsigned)n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define LIST(function, type, graphics, FILL) \
	nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, type *infos) { \
		ANY_CALL(count); \
		struct found all[MOST]; \
		nvmlReturn_t ret = list(&c, graphics, count, all); \
		for (unsigned i = 0; !ret && i < *count; i++) { \
			if (!infos) return NVML_ERROR_INVALID_ARGUMENT; \
			infos[i].pid = all[i].pid; \
			infos[i].usedGpuMemory = all[i].memory; \
			FILL \
		} \
		return ret; \
	}
#define WITH_INSTANCE infos[i].gpuInstanceId = all[i].gi; infos[i].computeInstanceId = all[i].ci;
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, false, WITH_INSTANCE)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, false, WITH_INSTANCE)
LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, false, )
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, true, WITH_INSTANCE)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, true, WITH_INSTANCE)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, true, )

#define NOBODY(function, type) \
	nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, type *infos) { \
		ANY_CALL(count); \
		(void)infos; \
		*count = 0; \
		return NVML_SUCCESS; \
	}
NOBODY(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
NOBODY(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
NOBODY(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)

// Utilisation by process: each workload's own rates.
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count, unsigned long long lastSeen) {
	GPU_CALL(count);
	(void)lastSeen;
	if (flag_of(c.s, c.gpu, "mig.mode")) return NVML_ERROR_NOT_SUPPORTED;
	struct found all[MOST];
	int n = of_loads(&c, false, all);
	unsigned room = *count;
	*count = (unsigned)n;
	if (n == 0) return NVML_ERROR_NOT_FOUND;
	if (!samples || room < (unsigned)n) return NVML_ERROR_INSUFFICIENT_SIZE;
	unsigned util = (unsigned)(rate_of(&c, R_UTIL) * 100 / n + 0.5);
	for (int i = 0; i < n; i++)
		samples[i] = (nvmlProcessUtilizationSample_t){.pid = all[i].pid, .smUtil = util, .timeStamp = (unsigned long long)(monotonic() / 1000)};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
	GPU_CALL(mode);
	*mode = (nvmlEnableState_t)flag_of(c.s, c.gpu, "accounting");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *size) {
	GPU_CALL(size);
	*size = 4000;
	return NVML_SUCCESS;
}
