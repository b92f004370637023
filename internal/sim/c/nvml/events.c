// Events: XIDs and ECC errors, seen only by who waits for them.
#include "nvml_sim.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct nvmlEventSet_st {
	uint32_t seen;                  // events up to here have been told
	bool started;
	uint64_t types[MAX_GPUS];
};

#define SUPPORTED (nvmlEventTypeXidCriticalError | nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError | \
	nvmlEventTypePState | nvmlEventTypeClock | nvmlEventTypeGpuRecoveryAction)

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	NODE_CALL(set);
	if (!set) return NVML_ERROR_INVALID_ARGUMENT;
	set->handle = calloc(1, sizeof *set->handle);
	return set->handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
	NODE_CALL((char *)NULL);
	free(set.handle);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
	GPU_CALL(types);
	*types = SUPPORTED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
	CALL_(&device, true, NULL, 0);
	if (!set.handle) return NVML_ERROR_INVALID_ARGUMENT;
	if (types & ~(unsigned long long)SUPPORTED) return NVML_ERROR_NOT_SUPPORTED;
	struct state *st = call_state(&c);
	if (!set.handle->started) set.handle->seen = st->events;
	set.handle->started = true;
	set.handle->types[c.gpu] |= types;
	done_with(st);
	return NVML_SUCCESS;
}

static bool next_event(struct state *st, struct nvmlEventSet_st *set, nvmlEventData_t *data) {
	bool found = false;
	state_lock(&st->lock);
	if (st->events - set->seen > MAX_EVENTS) set->seen = st->events - MAX_EVENTS;
	while (!found && set->seen != st->events) {
		const struct event *e = &st->event[set->seen++ % MAX_EVENTS];
		if (!(set->types[e->gpu] & e->type)) continue;
		*data = (nvmlEventData_t){device_handle(e->gpu, -1), e->type, e->data, e->gi, e->ci};
		found = true;
	}
	pthread_mutex_unlock(&st->lock);
	return found;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
	NODE_CALL(data);
	if (!set.handle || !data) return NVML_ERROR_INVALID_ARGUMENT;
	struct state *st = call_state(&c);
	done_with(st);
	int64_t deadline = monotonic() + timeout_ms * MS;
	for (;;) {
		uint32_t seen = st->events;
		if (next_event(st, set.handle, data)) return NVML_SUCCESS;
		int64_t left = deadline - monotonic();
		if (left <= 0) return NVML_ERROR_TIMEOUT;
		struct timespec t = {left / NS, left % NS};
		syscall(SYS_futex, &st->events, FUTEX_WAIT, seen, &t, NULL, 0);
	}
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
	return nvmlEventSetWait_v2(set, data, timeout_ms);
}
