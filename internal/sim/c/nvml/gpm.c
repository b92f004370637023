// GPM: samples of cumulative counters, refreshed every 100 ms, and the metrics
// between two of them.
#include "nvml_sim.h"

#include <math.h>
#include <stdlib.h>

#define SM_CLOCK 1e9 // cycles are counted at this clock, whatever the real one is

struct nvmlGpmSample_st {
	bool taken;
	int gpu, slot;
	int64_t time;          // of the refresh, not of the call
	double sms;
	struct meter meter;
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
	ANY_CALL(support);
	NEEDS_VERSION(support->version, NVML_GPM_SUPPORT_VERSION);
	support->isSupportedDevice = flag_of(c.s, c.gpu, "gpm.supported");
	return NVML_SUCCESS;
}

#define NEEDS_GPM if (!flag_of(c.s, c.gpu, "gpm.supported")) return NVML_ERROR_NOT_SUPPORTED

nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t device, unsigned int *state) {
	GPU_CALL(state);
	NEEDS_GPM;
	*state = flag_of(c.s, c.gpu, "gpm.streaming");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
	NODE_CALL(sample);
	if (!sample) return NVML_ERROR_INVALID_ARGUMENT;
	sample->handle = calloc(1, sizeof *sample->handle);
	return sample->handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
	NODE_CALL((char *)NULL);
	if (!sample.handle) return NVML_ERROR_INVALID_ARGUMENT;
	free(sample.handle);
	return NVML_SUCCESS;
}

static nvmlReturn_t sample_now(const struct call *c, int slot, struct nvmlGpmSample_st *sample) {
	if (!sample) return NVML_ERROR_INVALID_ARGUMENT;
	if (!flag_of(c->s, c->gpu, "gpm.streaming")) return NVML_ERROR_INVALID_STATE;
	struct state *st = call_state(c);
	const struct gpu_state *u = &st->gpu[c->gpu];
	*sample = (struct nvmlGpmSample_st){
		.taken = true, .gpu = c->gpu, .slot = slot, .time = st->gpm_time,
		.sms = slot < 0 ? number_of(c->s, c->gpu, "sms") : instance_of(c->s, c->gpu, slot).sms,
		.meter = slot < 0 ? u->gpm_whole : u->gpm_slot[slot],
	};
	done_with(st);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
	CALL_(&device, false, NULL, 0);
	NEEDS_GPM;
	return sample_now(&c, c.slot, sample.handle);
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gi, nvmlGpmSample_t sample) {
	CALL_(&device, true, NULL, 0);
	NEEDS_GPM;
	for (int i = 0; i < MAX_SLOTS; i++) {
		struct instance m = instance_of(c.s, c.gpu, i);
		if (m.exists && m.gi == gi) return sample_now(&c, i, sample.handle);
	}
	return NVML_ERROR_NOT_FOUND;
}

static const enum rate percent_of[] = { // by metric id
	R_COUNT, R_UTIL, R_SM, R_OCCUPANCY, R_INTEGER, R_TENSOR, R_DFMA, R_HMMA, R_DMMA, R_IMMA, R_DRAM, R_FP64, R_FP32, R_FP16,
};

static const enum rate cycles_of[] = { // from NVML_GPM_METRIC_SM_CYCLES_ELAPSED on
	R_ELAPSED, R_SM, R_TENSOR, R_DMMA, R_HMMA, R_IMMA, R_DFMA, R_PCIE_TX, R_PCIE_RX, R_INTEGER, R_FP64, R_FP32, R_FP16,
};

struct pair {
	const struct nvmlGpmSample_st *a, *b;
	double seconds;
	int links;
	bool cumulative;
};

static double mean(const struct pair *p, enum rate r) {
	return (p->b->meter.sum[r] - p->a->meter.sum[r]) / p->seconds; // NaN for two samples of one refresh
}

static nvmlReturn_t metric_value(const struct pair *p, nvmlGpmMetric_t *m) {
	const double mib = 1 << 20;
	unsigned id = m->metricId;
	if (id >= NVML_GPM_METRIC_GRAPHICS_UTIL && id <= NVML_GPM_METRIC_FP16_UTIL) m->value = 100 * mean(p, percent_of[id]);
	else if (id == NVML_GPM_METRIC_PCIE_TX_PER_SEC) m->value = mean(p, R_PCIE_TX) / mib;
	else if (id == NVML_GPM_METRIC_PCIE_RX_PER_SEC) m->value = mean(p, R_PCIE_RX) / mib;
	else if (id == NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC && p->links) m->value = mean(p, R_NVLINK_RX) / mib;
	else if (id == NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC && p->links) m->value = mean(p, R_NVLINK_TX) / mib;
	else if (id >= NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC && id <= NVML_GPM_METRIC_NVLINK_L17_TX_PER_SEC && (int)(id - 62) / 2 < p->links)
		m->value = mean(p, (id - 62) % 2 ? R_NVLINK_TX : R_NVLINK_RX) / mib / p->links;
	else if (p->cumulative && (id == NVML_GPM_METRIC_PCIE_TX || id == NVML_GPM_METRIC_PCIE_RX))
		m->value = floor(p->b->meter.sum[cycles_of[id - NVML_GPM_METRIC_SM_CYCLES_ELAPSED]]);
	else if (p->cumulative && id >= NVML_GPM_METRIC_SM_CYCLES_ELAPSED && id <= NVML_GPM_METRIC_FP16_CYCLES_ACTIVE)
		m->value = floor(p->b->meter.sum[cycles_of[id - NVML_GPM_METRIC_SM_CYCLES_ELAPSED]] * SM_CLOCK * p->b->sms);
	else return NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get) {
	NODE_CALL(get);
	if (!get) return NVML_ERROR_INVALID_ARGUMENT;
	NEEDS_VERSION(get->version, NVML_GPM_METRICS_GET_VERSION);
	const struct nvmlGpmSample_st *a = get->sample1.handle, *b = get->sample2.handle;
	if (!a || !b || !a->taken || !b->taken || a->gpu != b->gpu || a->slot != b->slot || get->numMetrics > NVML_GPM_METRIC_MAX)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (b->time < a->time) return NVML_ERROR_INVALID_ARGUMENT;
	struct pair p = {a, b, (double)(b->time - a->time) / NS, (int)number_of(c.s, a->gpu, "nvlinks"), flag_of(c.s, NODE, "gpm.cumulative")};
	for (unsigned i = 0; i < get->numMetrics; i++) {
		nvmlGpmMetric_t *m = &get->metrics[i];
		m->value = 0;
		m->metricInfo = (nvmlGpmMetricMetricInfo_t){0};
		m->nvmlReturn = metric_value(&p, m);
	}
	return NVML_SUCCESS;
}
