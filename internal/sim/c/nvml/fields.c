// nvmlDeviceGetFieldValues: one table from field id to where the value comes from.
#include "nvml_sim.h"

#include <time.h>

enum kind {
	KEY,      // a number of the scenario
	FLAG,     // a switch of the scenario
	LINK,     // a per-link number, of scopeId, or of the id's own link
	LINK_SUM, // the same over all links
	MILLI,    // watts of the scenario as milliwatts
	NANO,     // an integral in ns
	OTHER,    // computed below
};

struct field { unsigned id; enum kind kind; nvmlValueType_t type; const char *key; enum rate rate; };

#define UINT NVML_VALUE_TYPE_UNSIGNED_INT
#define ULL NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
#define SINT NVML_VALUE_TYPE_SIGNED_INT

static const struct field fields[] = {
	{NVML_FI_DEV_ECC_CURRENT, FLAG, UINT, "ecc", 0},
	{NVML_FI_DEV_ECC_PENDING, OTHER, UINT, "ecc", 0},
	{NVML_FI_DEV_ECC_SBE_VOL_TOTAL, OTHER, ULL, "ecc", 0},
	{NVML_FI_DEV_ECC_DBE_VOL_TOTAL, OTHER, ULL, "ecc", 0},
	{NVML_FI_DEV_ECC_SBE_AGG_TOTAL, OTHER, ULL, "ecc", 0},
	{NVML_FI_DEV_ECC_DBE_AGG_TOTAL, OTHER, ULL, "ecc", 0},
	{NVML_FI_DEV_ECC_SBE_VOL_DEV, KEY, ULL, "ecc.volatile.corrected.dram", 0},
	{NVML_FI_DEV_ECC_DBE_VOL_DEV, KEY, ULL, "ecc.volatile.uncorrected.dram", 0},
	{NVML_FI_DEV_ECC_SBE_AGG_DEV, KEY, ULL, "ecc.aggregate.corrected.dram", 0},
	{NVML_FI_DEV_ECC_DBE_AGG_DEV, KEY, ULL, "ecc.aggregate.uncorrected.dram", 0},
	{NVML_FI_DEV_RETIRED_SBE, KEY, ULL, "retired.sbe", 0},
	{NVML_FI_DEV_RETIRED_DBE, KEY, ULL, "retired.dbe", 0},
	{NVML_FI_DEV_RETIRED_PENDING, FLAG, UINT, "retired.pending", 0},
	{NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, LINK_SUM, ULL, "nvlink.%d.crc", 0},
	{NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, LINK_SUM, ULL, "nvlink.%d.crc_data", 0},
	{NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, LINK_SUM, ULL, "nvlink.%d.replay", 0},
	{NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, LINK_SUM, ULL, "nvlink.%d.recovery", 0},
	{NVML_FI_DEV_PERF_POLICY_POWER, NANO, ULL, NULL, R_SW_POWER_CAP},
	{NVML_FI_DEV_PERF_POLICY_THERMAL, NANO, ULL, NULL, R_SW_THERMAL},
	{NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, NANO, ULL, NULL, R_SYNC_BOOST},
	{NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, NANO, ULL, NULL, R_BOARD_LIMIT},
	{NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, NANO, ULL, NULL, R_LOW_UTILIZATION},
	{NVML_FI_DEV_PERF_POLICY_RELIABILITY, NANO, ULL, NULL, R_RELIABILITY},
	{NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, NANO, ULL, NULL, R_APP_CLOCKS},
	{NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, NANO, ULL, NULL, R_BASE_CLOCKS},
	{NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, NANO, ULL, "throttle.counters", R_SW_THERMAL},
	{NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, NANO, ULL, "throttle.counters", R_HW_THERMAL},
	{NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, NANO, ULL, "throttle.counters", R_HW_POWER_BRAKE},
	{NVML_FI_DEV_MEMORY_TEMP, OTHER, UINT, NULL, 0},
	{NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, OTHER, ULL, NULL, 0},
	{NVML_FI_DEV_ENERGY, OTHER, ULL, NULL, 0},
	{NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, KEY, UINT, "nvlink.speed", 0},
	{NVML_FI_DEV_NVLINK_LINK_COUNT, KEY, UINT, "nvlinks", 0},
	{NVML_FI_DEV_PCIE_REPLAY_COUNTER, KEY, ULL, "pcie.replay", 0},
	{NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER, KEY, ULL, "pcie.replay_rollover", 0},
	{NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, OTHER, ULL, "nvlinks", 0},
	{NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, OTHER, ULL, "nvlinks", 0},
	{NVML_FI_DEV_REMAPPED_COR, KEY, UINT, "remap.correctable", 0},
	{NVML_FI_DEV_REMAPPED_UNC, KEY, UINT, "remap.uncorrectable", 0},
	{NVML_FI_DEV_REMAPPED_PENDING, FLAG, UINT, "remap.pending", 0},
	{NVML_FI_DEV_REMAPPED_FAILURE, FLAG, UINT, "remap.failed", 0},
	{NVML_FI_DEV_REMAPPED_ROWS_COR_INACTIVE, KEY, UINT, "remap.inactive.correctable", 0},
	{NVML_FI_DEV_REMAPPED_ROWS_UNC_INACTIVE, KEY, UINT, "remap.inactive.uncorrectable", 0},
	{NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT, OTHER, UINT, "nvlinks", 0},
	{NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, LINK, ULL, "nvlink.%d.replay", 0},
	{NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, LINK, ULL, "nvlink.%d.recovery", 0},
	{NVML_FI_DEV_NVLINK_ERROR_DL_CRC, LINK, ULL, "nvlink.%d.crc", 0},
	{NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL, LINK_SUM, ULL, "nvlink.%d.ecc", 0},
	{NVML_FI_DEV_NVLINK_GET_SPEED, OTHER, UINT, "nvlinks", 0},
	{NVML_FI_DEV_NVLINK_GET_STATE, LINK, UINT, "nvlink.%d.active", 0},
	{NVML_FI_DEV_NVLINK_GET_VERSION, KEY, UINT, "nvlink.version", 0},
	{NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER, KEY, ULL, "pcie.l0_to_recovery", 0},
	{NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, KEY, ULL, "pcie.correctable", 0},
	{NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED, KEY, ULL, "pcie.naks_received", 0},
	{NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR, KEY, ULL, "pcie.receiver_error", 0},
	{NVML_FI_DEV_PCIE_COUNT_BAD_TLP, KEY, ULL, "pcie.bad_tlp", 0},
	{NVML_FI_DEV_PCIE_COUNT_NAKS_SENT, KEY, ULL, "pcie.naks_sent", 0},
	{NVML_FI_DEV_PCIE_COUNT_BAD_DLLP, KEY, ULL, "pcie.bad_dllp", 0},
	{NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, KEY, ULL, "pcie.non_fatal", 0},
	{NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR, KEY, ULL, "pcie.fatal", 0},
	{NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ, KEY, ULL, "pcie.unsupported_req", 0},
	{NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR, KEY, ULL, "pcie.lcrc", 0},
	{NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, KEY, ULL, "pcie.lane_error", 0},
	{NVML_FI_DEV_PCIE_COUNT_TX_BYTES, OTHER, ULL, NULL, 0},
	{NVML_FI_DEV_PCIE_COUNT_RX_BYTES, OTHER, ULL, NULL, 0},
	{NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED, OTHER, UINT, NULL, 0},
	{NVML_FI_DEV_POWER_AVERAGE, OTHER, UINT, NULL, 0},
	{NVML_FI_DEV_POWER_INSTANT, OTHER, UINT, NULL, 0},
	{NVML_FI_DEV_POWER_MIN_LIMIT, MILLI, UINT, "power.limit.min", 0},
	{NVML_FI_DEV_POWER_MAX_LIMIT, MILLI, UINT, "power.limit.max", 0},
	{NVML_FI_DEV_POWER_DEFAULT_LIMIT, MILLI, UINT, "power.limit.default", 0},
	{NVML_FI_DEV_POWER_CURRENT_LIMIT, MILLI, UINT, "power.limit", 0},
	{NVML_FI_DEV_POWER_REQUESTED_LIMIT, MILLI, UINT, "power.limit", 0},
	{NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT, OTHER, SINT, "temperature.margins", 0},
	{NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, OTHER, SINT, "temperature.margins", 0},
	{NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, OTHER, SINT, "temperature.margins", 0},
	{NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, OTHER, SINT, "temperature.margins", 0},
	{NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, OTHER, ULL, "nvlinks", 0},
	{NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, OTHER, ULL, "nvlinks", 0},
	{NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, LINK, ULL, "nvlink.%d.packet_errors", 0},
	{NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, LINK, ULL, "nvlink.%d.recovery_events", 0},
	{NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, LINK, ULL, "nvlink.%d.recovery_failed", 0},
	{NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, LINK, ULL, "nvlink.%d.recovery_events", 0},
	{NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, LINK, ULL, "nvlink.%d.effective_ber", 0},
	{NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, LINK, ULL, "nvlink.%d.symbol_errors", 0},
	{NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER, LINK, ULL, "nvlink.%d.symbol_ber", 0},
	{NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, KEY, UINT, "recovery", 0},
	{NVML_FI_DEV_C2C_LINK_COUNT, OTHER, UINT, NULL, 0},
};

static bool per_link_counter(unsigned id) { return id >= NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY && id <= NVML_FI_DEV_NVLINK_ERROR_DL_CRC; }
static bool nvlink5_only(unsigned id) { return id >= NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS && id <= NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER && id != NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX; }

static nvmlReturn_t link_value(const struct call *c, const struct field *f, unsigned scope, double *v) {
	int links = (int)number_of(c->s, c->gpu, "nvlinks");
	if (scope == UINT32_MAX && f->kind == LINK) return NVML_ERROR_INVALID_ARGUMENT;
	int generation = (int)number_of(c->s, c->gpu, "nvlink.version");
	if (links == 0) return NVML_ERROR_NOT_SUPPORTED;
	if (nvlink5_only(f->id) ? generation < 5 : (per_link_counter(f->id) || f->kind == LINK_SUM) && generation >= 5)
		return NVML_ERROR_NOT_SUPPORTED;
	if (f->kind == LINK) {
		if (scope >= (unsigned)links) return NVML_ERROR_INVALID_ARGUMENT;
		*v = number_at(c->s, c->gpu, f->key, (int)scope);
		return NVML_SUCCESS;
	}
	*v = 0;
	for (int i = 0; i < links; i++) *v += number_at(c->s, c->gpu, f->key, i);
	return NVML_SUCCESS;
}

static nvmlReturn_t field_computed(const struct call *c, unsigned id, unsigned scope, double *v) {
	int links = (int)number_of(c->s, c->gpu, "nvlinks");
	bool ecc = flag_of(c->s, c->gpu, "ecc");
	switch (id) {
	case NVML_FI_DEV_ECC_PENDING: *v = lacks(c->s, c->gpu, "ecc.pending") ? ecc : flag_of(c->s, c->gpu, "ecc.pending"); return 0;
	case NVML_FI_DEV_ECC_SBE_VOL_TOTAL: *v = (double)ecc_count(c, false, false, NULL); break;
	case NVML_FI_DEV_ECC_DBE_VOL_TOTAL: *v = (double)ecc_count(c, false, true, NULL); break;
	case NVML_FI_DEV_ECC_SBE_AGG_TOTAL: *v = (double)ecc_count(c, true, false, NULL); break;
	case NVML_FI_DEV_ECC_DBE_AGG_TOTAL: *v = (double)ecc_count(c, true, true, NULL); break;
	case NVML_FI_DEV_MEMORY_TEMP: {
		const struct entry *e = scenario_get(c->s, c->gpu, "temperature.memory");
		if (e && e->none) return NVML_ERROR_NOT_SUPPORTED;
		*v = e ? e->number : gpu_temperature(c) + 8;
		return 0;
	}
	case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
	case NVML_FI_DEV_ENERGY: *v = counter_of(c, R_POWER) * 1000; break;
	case NVML_FI_DEV_POWER_AVERAGE:
	case NVML_FI_DEV_POWER_INSTANT: *v = rate_of(c, R_POWER) * 1000; break;
	case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
	case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX:
	case NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES:
	case NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES: {
		bool bytes = id >= NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES;
		bool tx = id == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX || id == NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES;
		if (!links || (bytes && number_of(c->s, c->gpu, "nvlink.version") < 5)) return NVML_ERROR_NOT_SUPPORTED;
		*v = counter_of(c, tx ? R_NVLINK_TX : R_NVLINK_RX) / (bytes ? 1 : 1024);
		if (scope != UINT32_MAX) { // one link's share
			if (scope >= (unsigned)links) return NVML_ERROR_INVALID_ARGUMENT;
			*v /= links;
		}
		break;
	}
	case NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT:
		if (!links) return NVML_ERROR_NOT_SUPPORTED;
		*v = strcmp(text_of(c->s, c->gpu, "nvlink.remote"), "peers") ? links : 0;
		break;
	case NVML_FI_DEV_NVLINK_GET_SPEED:
		if (!links) return NVML_ERROR_NOT_SUPPORTED;
		if (scope >= (unsigned)links) return NVML_ERROR_INVALID_ARGUMENT;
		*v = number_at(c->s, c->gpu, "nvlink.%d.active", (int)scope) ? number_of(c->s, c->gpu, "nvlink.speed") : 0;
		break;
	case NVML_FI_DEV_PCIE_COUNT_TX_BYTES: *v = counter_of(c, R_PCIE_TX); break;
	case NVML_FI_DEV_PCIE_COUNT_RX_BYTES: *v = counter_of(c, R_PCIE_RX); break;
	case NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED: *v = number_of(c->s, c->gpu, "architecture") >= NVML_DEVICE_ARCH_HOPPER; break;
	case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT: *v = number_of(c->s, c->gpu, "temperature.max") - number_of(c->s, c->gpu, "temperature.shutdown"); break;
	case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT: *v = number_of(c->s, c->gpu, "temperature.max") - number_of(c->s, c->gpu, "temperature.slowdown"); break;
	case NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT:
	case NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT:
	case NVML_FI_DEV_C2C_LINK_COUNT: *v = 0; break;
	}
	return NVML_SUCCESS;
}

// With which driver a field came; NVML numbers them in the order of their appearance.
static int first_driver(unsigned id) {
	static const struct { unsigned last; int driver; } since[] = {
		{NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL, 0},
		{NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, 520},
		{NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT, 525},
		{NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX, 535},
		{NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_SUPPORTED, 555},
		{NVML_FI_DEV_PCIE_INBOUND_ATOMICS_MASK, 560},
		{NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 565},
		{NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, 570},
		{NVML_FI_DEV_EDPP_MULTIPLIER, 575},
	};
	for (size_t i = 0; i < sizeof since / sizeof *since; i++)
		if (id <= since[i].last) return since[i].driver;
	return 580;
}

static nvmlReturn_t field_value(const struct call *c, const struct field *f, unsigned scope, double *v) {
	if (driver_major(c) < first_driver(f->id)) return NVML_ERROR_NOT_SUPPORTED;
	if (is_guest(c) && f->id != NVML_FI_DEV_ECC_CURRENT && f->id != NVML_FI_DEV_ECC_PENDING) return NVML_ERROR_NOT_SUPPORTED;
	if (c->slot >= 0 && strncmp(f->key ? f->key : "", "ecc", 3)) return NVML_ERROR_NOT_SUPPORTED;
	if (f->key && f->kind != LINK && f->kind != LINK_SUM && lacks(c->s, c->gpu, f->key)) return NVML_ERROR_NOT_SUPPORTED;
	if (f->key && !strncmp(f->key, "ecc.", 4) && !flag_of(c->s, c->gpu, "ecc")) return NVML_ERROR_NOT_SUPPORTED;
	if (f->id >= NVML_FI_DEV_ECC_SBE_VOL_TOTAL && f->id <= NVML_FI_DEV_ECC_DBE_AGG_TOTAL && !flag_of(c->s, c->gpu, "ecc")) return NVML_ERROR_NOT_SUPPORTED;
	bool power = f->kind == MILLI || f->id == NVML_FI_DEV_ENERGY || f->id == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION ||
	             f->id == NVML_FI_DEV_POWER_AVERAGE || f->id == NVML_FI_DEV_POWER_INSTANT;
	if (power && !flag_of(c->s, c->gpu, "power.supported")) return NVML_ERROR_NOT_SUPPORTED;
	if (f->key && f->kind != KEY && f->kind != FLAG && (!strcmp(f->key, "throttle.counters") || !strcmp(f->key, "temperature.margins")) && !flag_of(c->s, c->gpu, f->key))
		return NVML_ERROR_NOT_SUPPORTED;
	switch (f->kind) {
	case KEY: *v = number_of(c->s, c->gpu, f->key); return NVML_SUCCESS;
	case FLAG: *v = flag_of(c->s, c->gpu, f->key); return NVML_SUCCESS;
	case MILLI: *v = number_of(c->s, c->gpu, f->key) * 1000; return NVML_SUCCESS;
	case NANO: *v = counter_of(c, f->rate) * NS; return NVML_SUCCESS;
	case LINK:
	case LINK_SUM: return link_value(c, f, scope, v);
	default: return field_computed(c, f->id, scope, v);
	}
}

// What the scenario says to answer for one field: true if anything.
static bool field_fault(const struct call *c, nvmlFieldValue_t *f) {
	char key[32];
	snprintf(key, sizeof key, "field.%u", f->fieldId);
	const struct entry *e = scenario_get(c->s, c->gpu, key);
	if (!e) return false;
	bool garbage = !strcmp(e->text, "garbage");
	f->nvmlReturn = garbage ? NVML_SUCCESS : code_of(e->text);
	if (garbage) f->value.ullVal = 0xa5a5a5a5a5a5a5a5ULL;
	return true;
}

static const struct field *field_of(unsigned id) {
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (fields[i].id == id) return &fields[i];
	return NULL;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
	CALL_(&device, false, values, count > 0 ? sizeof *values * (size_t)count : 0);
	if (!values || count < 1) return NVML_ERROR_INVALID_ARGUMENT;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	for (int i = 0; i < count; i++) {
		nvmlFieldValue_t *f = &values[i];
		const struct field *known = field_of(f->fieldId);
		double v = 0;
		f->timestamp = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
		f->latencyUsec = 1;
		f->value.ullVal = 0;
		f->valueType = known ? known->type : ULL;
		if (field_fault(&c, f)) continue;
		f->nvmlReturn = known ? field_value(&c, known, f->scopeId, &v) : NVML_ERROR_NOT_SUPPORTED;
		if (f->nvmlReturn) continue;
		if (f->valueType == ULL) f->value.ullVal = (unsigned long long)v;
		else if (f->valueType == SINT) f->value.siVal = (int)v;
		else f->value.uiVal = (unsigned)v;
	}
	return NVML_SUCCESS;
}
