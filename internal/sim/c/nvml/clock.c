// Clocks, performance state, throttling, utilisation.
#include "nvml_sim.h"

#include <time.h>

static bool busy(const struct call *c) { return rate_of(c, R_UTIL) > 0 || rate_of(c, R_SM) > 0; }

static unsigned clock_now(const struct call *c, nvmlClockType_t type) {
	bool b = busy(c);
	switch (type) {
	case NVML_CLOCK_MEM: return (unsigned)number_of(c->s, c->gpu, b ? "clock.memory" : "clock.memory.idle");
	case NVML_CLOCK_VIDEO: return (unsigned)number_of(c->s, c->gpu, b ? "clock.video.max" : "clock.sm.idle");
	default:
		if (!lacks(c->s, c->gpu, "clock.sm")) return (unsigned)number_of(c->s, c->gpu, "clock.sm");
		return (unsigned)number_of(c->s, c->gpu, b ? "clock.sm.max" : "clock.sm.idle");
	}
}

static unsigned clock_max(const struct call *c, nvmlClockType_t type) {
	const char *key = type == NVML_CLOCK_MEM ? "clock.memory" : type == NVML_CLOCK_VIDEO ? "clock.video.max" : "clock.sm.max";
	return (unsigned)number_of(c->s, c->gpu, key);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) {
	GPU_CALL(mhz);
	if (type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	*mhz = clock_now(&c, type);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) {
	GPU_CALL(mhz);
	if (type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	*mhz = clock_max(&c, type);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned int *mhz) {
	GPU_CALL(mhz);
	if (type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	*mhz = id == NVML_CLOCK_ID_CURRENT ? clock_now(&c, type) : clock_max(&c, type);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) {
	GPU_CALL(mhz);
	const struct entry *e = scenario_get(c.s, c.gpu, "clock.app");
	if (e && e->none) return NVML_ERROR_NOT_SUPPORTED;
	*mhz = e && type != NVML_CLOCK_MEM ? (unsigned)e->number : clock_max(&c, type);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) {
	GPU_CALL(mhz);
	const struct entry *e = scenario_get(c.s, c.gpu, "clock.app");
	if (e && e->none) return NVML_ERROR_NOT_SUPPORTED;
	*mhz = clock_max(&c, type);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz) {
	return nvmlDeviceGetMaxClockInfo(device, type, mhz);
}

static nvmlReturn_t answer_list(const unsigned *have, unsigned n, unsigned int *count, unsigned int *out) {
	unsigned room = *count;
	*count = n;
	if (room < n || !out) return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, have, n * sizeof *out);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count, unsigned int *mhz) {
	GPU_CALL(count);
	unsigned one = clock_max(&c, NVML_CLOCK_MEM);
	return answer_list(&one, 1, count, mhz);
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory, unsigned int *count, unsigned int *mhz) {
	GPU_CALL(count);
	if (memory != clock_max(&c, NVML_CLOCK_MEM)) return NVML_ERROR_NOT_FOUND;
	unsigned steps[256], n = 0;
	unsigned low = (unsigned)number_of(c.s, c.gpu, "clock.sm.idle");
	for (unsigned m = clock_max(&c, NVML_CLOCK_SM); m >= low && n < 256; m -= 15) steps[n++] = m;
	return answer_list(steps, n, count, mhz);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state) {
	GPU_CALL(state);
	*state = busy(&c) ? NVML_PSTATE_0 : (nvmlPstates_t)number_of(c.s, c.gpu, "pstate.idle");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t *state) { return nvmlDeviceGetPerformanceState(device, state); }

// The bits follow the time counters: what throttles now has its bit set.
unsigned long long throttle_reasons(const struct call *c) {
	static const struct { enum rate rate; unsigned long long bits; } bit[] = {
		{R_SW_POWER_CAP, nvmlClocksEventReasonSwPowerCap}, {R_SW_THERMAL, nvmlClocksEventReasonSwThermalSlowdown},
		{R_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown | nvmlClocksThrottleReasonHwSlowdown},
		{R_HW_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown | nvmlClocksThrottleReasonHwSlowdown},
		{R_SYNC_BOOST, nvmlClocksEventReasonSyncBoost},
		{R_BOARD_LIMIT, nvmlClocksEventReasonBoardLimit}, {R_RELIABILITY, nvmlClocksEventReasonReliability},
	};
	double rates[R_COUNT];
	struct state *st = call_state(c);
	state_rates(st, c->gpu, -1, rates);
	done_with(st);
	unsigned long long reasons = (unsigned long long)number_of(c->s, c->gpu, "throttle.reasons");
	for (size_t i = 0; i < sizeof bit / sizeof *bit; i++)
		if (rates[bit[i].rate] > 0) reasons |= bit[i].bits;
	if (!reasons && rates[R_UTIL] == 0 && rates[R_SM] == 0) reasons = nvmlClocksEventReasonGpuIdle;
	return reasons;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
	GPU_CALL(reasons);
	*reasons = throttle_reasons(&c);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
	GPU_CALL(reasons);
	*reasons = throttle_reasons(&c);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons) {
	GPU_CALL(reasons);
	*reasons = 0x7ff;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons) {
	return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy, nvmlViolationTime_t *time) {
	GPU_CALL(time);
	static const enum rate of[] = {R_SW_POWER_CAP, R_SW_THERMAL, R_SYNC_BOOST, R_BOARD_LIMIT, R_LOW_UTILIZATION, R_RELIABILITY,
		R_COUNT, R_COUNT, R_COUNT, R_COUNT, R_APP_CLOCKS, R_BASE_CLOCKS};
	if (policy >= NVML_PERF_POLICY_COUNT || of[policy] == R_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	struct state *st = call_state(&c);
	time->referenceTime = (unsigned long long)(st->now / 1000);
	time->violationTime = (unsigned long long)(st->gpu[c.gpu].whole.sum[of[policy]] * NS);
	done_with(st);
	return NVML_SUCCESS;
}

// Not for a MIG device, and not for a GPU in MIG mode.
#define NEEDS_NO_MIG if (flag_of(c.s, c.gpu, "mig.mode")) return NVML_ERROR_NOT_SUPPORTED

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
	GPU_CALL(utilization);
	NEEDS_NO_MIG;
	utilization->gpu = (unsigned)(rate_of(&c, R_UTIL) * 100 + 0.5);
	utilization->memory = (unsigned)(rate_of(&c, R_DRAM) * 100 + 0.5);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent, unsigned int *period) {
	GPU_CALL(percent);
	NEEDS_NO_MIG;
	*percent = 0;
	if (period) *period = 167000;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent, unsigned int *period) {
	return nvmlDeviceGetEncoderUtilization(device, percent, period);
}

// The driver's ring of the last ten seconds.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long lastSeen,
                                  nvmlValueType_t *valueType, unsigned int *count, nvmlSample_t *samples) {
	GPU_CALL(count);
	NEEDS_NO_MIG;
	if (type > NVML_MEMORY_UTILIZATION_SAMPLES) return NVML_ERROR_NOT_SUPPORTED;
	struct state *st = call_state(&c);
	const struct gpu_state *u = &st->gpu[c.gpu];
	struct timespec wall;
	clock_gettime(CLOCK_REALTIME, &wall);
	int64_t offset = wall.tv_sec * NS + wall.tv_nsec - monotonic();
	unsigned n = 0, room = *count;
	for (unsigned i = 0; samples && i < RING; i++) {
		unsigned k = (u->ring_next + i) % RING;
		unsigned long long at = u->ring[k].time ? (unsigned long long)((u->ring[k].time + offset) / 1000) : 0;
		if (at <= lastSeen || at == 0) continue;
		if (n < room) {
			double v = type == NVML_TOTAL_POWER_SAMPLES ? u->ring[k].power * 1000 : 100 * (type == NVML_GPU_UTILIZATION_SAMPLES ? u->ring[k].util : u->ring[k].memory);
			samples[n] = (nvmlSample_t){.timeStamp = at, .sampleValue.uiVal = (unsigned)(v + 0.5)};
		}
		n++;
	}
	done_with(st);
	if (valueType) *valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
	*count = samples ? (n < room ? n : room) : RING;
	return n || !samples ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
