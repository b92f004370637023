// ECC counters, row remapping, page retirement, repairs.
#include "nvml_sim.h"

static const char *const places[] = {"dram", "sram", "sram_parity"};

uint64_t ecc_count(const struct call *c, bool aggregate, bool uncorrected, const char *where) {
	uint64_t n = 0;
	for (int i = 0; i < 3; i++) {
		char key[64];
		if (where && strcmp(where, places[i])) continue;
		snprintf(key, sizeof key, "ecc.%s.%s.%s", aggregate ? "aggregate" : "volatile", uncorrected ? "uncorrected" : "corrected", places[i]);
		n += (uint64_t)number_of(c->s, c->gpu, key);
	}
	return n;
}

#define NEEDS_ECC NEEDS("ecc"); if (!flag_of(c.s, c.gpu, "ecc")) return NVML_ERROR_NOT_SUPPORTED

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
	GPU_CALL(current);
	NEEDS("ecc");
	*current = (nvmlEnableState_t)flag_of(c.s, c.gpu, "ecc");
	if (pending) *pending = lacks(c.s, c.gpu, "ecc.pending") ? *current : (nvmlEnableState_t)flag_of(c.s, c.gpu, "ecc.pending");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
	GPU_CALL(mode);
	NEEDS("ecc");
	*mode = NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *count) {
	ANY_CALL(count);
	NEEDS_ECC;
	if (type >= NVML_MEMORY_ERROR_TYPE_COUNT || counter >= NVML_ECC_COUNTER_TYPE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	*count = ecc_count(&c, counter == NVML_AGGREGATE_ECC, type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NULL);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                             nvmlMemoryLocation_t location, unsigned long long *count) {
	ANY_CALL(count);
	NEEDS_ECC;
	if (type >= NVML_MEMORY_ERROR_TYPE_COUNT || counter >= NVML_ECC_COUNTER_TYPE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	bool aggregate = counter == NVML_AGGREGATE_ECC, uncorrected = type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
	switch (location) {
	case NVML_MEMORY_LOCATION_DRAM: *count = ecc_count(&c, aggregate, uncorrected, "dram"); return NVML_SUCCESS;
	case NVML_MEMORY_LOCATION_SRAM:
		*count = ecc_count(&c, aggregate, uncorrected, "sram") + ecc_count(&c, aggregate, uncorrected, "sram_parity");
		return NVML_SUCCESS;
	default: return NVML_ERROR_NOT_SUPPORTED; // caches and registers apart: before Ampere
	}
}

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, nvmlEccErrorCounts_t *counts) {
	GPU_CALL(counts);
	NEEDS_ECC;
	memset(counts, 0, sizeof *counts);
	bool aggregate = counter == NVML_AGGREGATE_ECC, uncorrected = type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
	counts->deviceMemory = ecc_count(&c, aggregate, uncorrected, "dram");
	counts->l2Cache = ecc_count(&c, aggregate, uncorrected, "sram") + ecc_count(&c, aggregate, uncorrected, "sram_parity");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_t *status) {
	GPU_CALL(status);
	NEEDS_VERSION(status->version, nvmlEccSramErrorStatus_v1);
	NEEDS_ECC;
	if (number_of(c.s, c.gpu, "architecture") < NVML_DEVICE_ARCH_AMPERE) return NVML_ERROR_NOT_SUPPORTED;
	status->aggregateUncParity = ecc_count(&c, true, true, "sram_parity");
	status->aggregateUncSecDed = ecc_count(&c, true, true, "sram");
	status->aggregateCor = ecc_count(&c, true, false, "sram");
	status->volatileUncParity = ecc_count(&c, false, true, "sram_parity");
	status->volatileUncSecDed = ecc_count(&c, false, true, "sram");
	status->volatileCor = ecc_count(&c, false, false, "sram");
	bool l2 = !lacks(c.s, c.gpu, "ecc.sram_bucket.l2"), sm = !lacks(c.s, c.gpu, "ecc.sram_bucket.sm");
	status->aggregateUncBucketL2 = l2 ? (unsigned long long)number_of(c.s, c.gpu, "ecc.sram_bucket.l2") : status->aggregateUncSecDed;
	status->aggregateUncBucketSm = sm ? (unsigned long long)number_of(c.s, c.gpu, "ecc.sram_bucket.sm") : status->aggregateUncParity;
	status->aggregateUncBucketPcie = (unsigned long long)number_of(c.s, c.gpu, "ecc.sram_bucket.pcie");
	status->aggregateUncBucketMcu = (unsigned long long)number_of(c.s, c.gpu, "ecc.sram_bucket.mcu");
	status->aggregateUncBucketOther = (unsigned long long)number_of(c.s, c.gpu, "ecc.sram_bucket.other");
	status->bThresholdExceeded = flag_of(c.s, c.gpu, "ecc.sram_threshold");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected, unsigned int *pending, unsigned int *failed) {
	GPU_CALL(corrected);
	NEEDS("remap.correctable");
	if (!uncorrected || !pending || !failed) return NVML_ERROR_INVALID_ARGUMENT;
	*corrected = (unsigned)number_of(c.s, c.gpu, "remap.correctable");
	*uncorrected = (unsigned)number_of(c.s, c.gpu, "remap.uncorrectable");
	*pending = flag_of(c.s, c.gpu, "remap.pending");
	*failed = flag_of(c.s, c.gpu, "remap.failed");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *info) {
	GPU_CALL(info);
	NEEDS("remap.correctable");
	info->corrInactiveRemaps = (unsigned)number_of(c.s, c.gpu, "remap.inactive.correctable");
	info->uncInactiveRemaps = (unsigned)number_of(c.s, c.gpu, "remap.inactive.uncorrectable");
	info->corrActiveRemaps = (unsigned)number_of(c.s, c.gpu, "remap.correctable");
	info->uncActiveRemaps = (unsigned)number_of(c.s, c.gpu, "remap.uncorrectable");
	info->bPending = flag_of(c.s, c.gpu, "remap.pending");
	info->bFailureOccurred = flag_of(c.s, c.gpu, "remap.failed");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *values) {
	GPU_CALL(values);
	NEEDS("remap.correctable");
	values->max = (unsigned)number_of(c.s, c.gpu, "remap.histogram.max");
	values->high = (unsigned)number_of(c.s, c.gpu, "remap.histogram.high");
	values->partial = (unsigned)number_of(c.s, c.gpu, "remap.histogram.partial");
	values->low = (unsigned)number_of(c.s, c.gpu, "remap.histogram.low");
	values->none = (unsigned)number_of(c.s, c.gpu, "remap.histogram.none");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
                                          unsigned long long *addresses, unsigned long long *timestamps) {
	GPU_CALL(count);
	const char *key = cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR ? "retired.dbe" : "retired.sbe";
	NEEDS(key);
	unsigned have = (unsigned)number_of(c.s, c.gpu, key), room = *count;
	*count = have;
	if (room == 0 && !addresses) return NVML_SUCCESS;
	if (room < have) return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < have; i++) {
		addresses[i] = 0x10000ULL * (i + 1);
		if (timestamps) timestamps[i] = 1700000000ULL + i;
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count, unsigned long long *addresses) {
	return nvmlDeviceGetRetiredPages_v2(device, cause, count, addresses, NULL);
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *pending) {
	GPU_CALL(pending);
	NEEDS("retired.pending");
	*pending = (nvmlEnableState_t)flag_of(c.s, c.gpu, "retired.pending");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *status) {
	GPU_CALL(status);
	NEEDS_VERSION(status->version, nvmlRepairStatus_v1);
	if (!flag_of(c.s, c.gpu, "repair.supported")) return NVML_ERROR_NOT_SUPPORTED;
	status->bChannelRepairPending = flag_of(c.s, c.gpu, "repair.channel");
	status->bTpcRepairPending = flag_of(c.s, c.gpu, "repair.tpc");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t device, nvmlUnrepairableMemoryStatus_v1_t *status) {
	GPU_CALL(status);
	NEEDS("unrepairable");
	status->bUnrepairableMemory = flag_of(c.s, c.gpu, "unrepairable");
	return NVML_SUCCESS;
}
