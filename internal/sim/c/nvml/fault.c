// The way into every call: the scenario as it is now, the count, the faults,
// the delay, lost GPUs and handles that are none.
#include "nvml_sim.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct nvmlDevice_st handles[MAX_GPUS][MAX_SLOTS + 1];
static struct state *state;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The scenario lies beside the library: the process that loads it may have an empty environment.
static void start(void) {
	Dl_info info;
	char path[PATH_MAX] = ".";
	if (dladdr((void *)&call_open, &info) && info.dli_fname) snprintf(path, sizeof path, "%s", info.dli_fname);
	char *slash = strrchr(path, '/');
	if (slash) *slash = 0;
	else strcpy(path, ".");
	scenario_locate(path, 2 * MS); // a tick of a sampler is a hundred calls
	state = state_open(path);
	for (int g = 0; g < MAX_GPUS; g++)
		for (int i = 0; i <= MAX_SLOTS; i++) handles[g][i] = (struct nvmlDevice_st){g, i - 1};
}

nvmlDevice_t device_handle(int gpu, int slot) { return (nvmlDevice_t){&handles[gpu][slot + 1]}; }

static bool is_handle(const struct nvmlDevice_st *h) {
	return h >= handles[0] && h <= &handles[MAX_GPUS - 1][MAX_SLOTS];
}

struct fault {
	bool set, hang, garbage, crash;
	nvmlReturn_t ret;
	int64_t delay;
};

static const struct { const char *name; nvmlReturn_t code; } codes[] = {
	{"SUCCESS", 0}, {"UNINITIALIZED", 1}, {"INVALID_ARGUMENT", 2}, {"NOT_SUPPORTED", 3}, {"NO_PERMISSION", 4},
	{"ALREADY_INITIALIZED", 5}, {"NOT_FOUND", 6}, {"INSUFFICIENT_SIZE", 7}, {"INSUFFICIENT_POWER", 8},
	{"DRIVER_NOT_LOADED", 9}, {"TIMEOUT", 10}, {"IRQ_ISSUE", 11}, {"LIBRARY_NOT_FOUND", 12}, {"FUNCTION_NOT_FOUND", 13},
	{"CORRUPTED_INFOROM", 14}, {"GPU_IS_LOST", 15}, {"RESET_REQUIRED", 16}, {"OPERATING_SYSTEM", 17},
	{"LIB_RM_VERSION_MISMATCH", 18}, {"IN_USE", 19}, {"MEMORY", 20}, {"NO_DATA", 21}, {"VGPU_ECC_NOT_SUPPORTED", 22},
	{"INSUFFICIENT_RESOURCES", 23}, {"FREQ_NOT_SUPPORTED", 24}, {"ARGUMENT_VERSION_MISMATCH", 25}, {"DEPRECATED", 26},
	{"NOT_READY", 27}, {"GPU_NOT_FOUND", 28}, {"INVALID_STATE", 29}, {"UNKNOWN", 999},
};

nvmlReturn_t code_of(const char *word) {
	if (*word >= '0' && *word <= '9') return (nvmlReturn_t)atoi(word);
	if (!strncmp(word, "NVML_", 5)) word += 5;
	if (!strncmp(word, "ERROR_", 6)) word += 6;
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (!strcmp(word, codes[i].name)) return codes[i].code;
	return NVML_ERROR_UNKNOWN;
}

// `GPU_IS_LOST`, `delay=5ms`, `hang`, `garbage`, `crash`, separated by commas.
static void fault_parse(struct fault *f, const char *text) {
	char word[64];
	while (*text) {
		size_t n = strcspn(text, ", ");
		snprintf(word, sizeof word, "%.*s", (int)n, text);
		if (!strncmp(word, "delay=", 6)) f->delay = scenario_parse_duration(word + 6);
		else if (!strcmp(word, "hang")) f->hang = true;
		else if (!strcmp(word, "garbage")) f->garbage = true;
		else if (!strcmp(word, "crash")) f->crash = true;
		else if (n) { f->set = true; f->ret = code_of(word); }
		text += n;
		text += strspn(text, ", ");
	}
}

// From the widest key to the narrowest: call.*, gpu.N.call.*, call.<function>, gpu.N.call.<function>.
static struct fault fault_of(const struct scenario *s, const char *function, int gpu) {
	struct fault f = {0};
	if (!s->faults) return f;
	char name[96];
	snprintf(name, sizeof name, "call.%s", function);
	const char *names[] = {"call.*", name};
	for (int i = 0; i < 2; i++) {
		const struct entry *e = scenario_exact(s, NODE, names[i]);
		if (e) fault_parse(&f, e->text);
		if (gpu >= 0 && (e = scenario_get(s, gpu, names[i]))) fault_parse(&f, e->text);
	}
	return f;
}

static void wait_for(int64_t ns) {
	struct timespec t = {ns / NS, ns % NS};
	while (nanosleep(&t, &t) && errno == EINTR) {}
}

static void fill_with_garbage(unsigned char *out, size_t size) {
	uint64_t x = (uint64_t)monotonic() | 1;
	for (size_t i = 0; i + 1 < size; i++) {
		x ^= x << 13; x ^= x >> 7; x ^= x << 17;
		out[i] = (unsigned char)(x | 0x80);
	}
	if (size) out[size - 1] = 0;
}

static nvmlReturn_t driver_trouble(const struct scenario *s, const char *function) {
	if (!s || !flag_of(s, NODE, "driver.loaded")) return NVML_ERROR_DRIVER_NOT_LOADED;
	if (flag_of(s, NODE, "driver.mismatch")) return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	bool starts = !strncmp(function, "nvmlInit", 8) || !strcmp(function, "nvmlShutdown");
	return starts || initialised() ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

bool is_guest(const struct call *c) { return number_of(c->s, c->gpu, "virtualization") == NVML_GPU_VIRTUALIZATION_MODE_VGPU; }

// What belongs to the board stays with the host: a virtual machine does not see it.
static bool hidden_from_guests(const char *function) {
	static const char *const of_the_board[] = {
		"GetSerial", "GetBoardPartNumber", "GetVbiosVersion", "GetInforom", "ValidateInforom", "GetGspFirmware", "GetModuleId",
		"GetPlatformInfo", "GetCurrPcieLink", "GetMaxPcieLink", "GetGpuMaxPcieLink", "GetPcie", "GetFanSpeed", "GetTemperature",
		"GetMarginTemperature", "GetPower", "GetEnforcedPowerLimit", "GetTotalEnergyConsumption", "GetRemappedRows", "GetRowRemapper",
		"GetSramEccErrorStatus", "GetRetiredPages", "GetRepairStatus", "GetUnrepairableMemoryFlag", "GetNvLink", "GetGpuFabricInfo",
		"GetApplicationsClock", "GetDefaultApplicationsClock", "GetCurrentClocksThrottleReasons", "GetCurrentClocksEventReasons",
		"GetViolationStatus", "GetTotalEccErrors", "GetMemoryErrorCounter", "GetDetailedEccErrors", "GetMigMode",
	};
	if (strncmp(function, "nvmlDevice", 10)) return false;
	for (size_t i = 0; i < sizeof of_the_board / sizeof *of_the_board; i++)
		if (!strncmp(function + 10, of_the_board[i], strlen(of_the_board[i]))) return true;
	return false;
}

static nvmlReturn_t handle_trouble(struct call *c, const char *function, const nvmlDevice_t *device, bool whole_only) {
	if (!device) return NVML_SUCCESS;
	if (c->gpu < 0 || c->gpu >= c->s->gpus || flag_of(c->s, c->gpu, "absent")) return NVML_ERROR_INVALID_ARGUMENT;
	if (flag_of(c->s, c->gpu, "lost")) return NVML_ERROR_GPU_IS_LOST;
	if (c->slot >= 0 && !instance_of(c->s, c->gpu, c->slot).exists) return NVML_ERROR_NOT_FOUND;
	if (c->slot >= 0 && whole_only) return NVML_ERROR_NOT_SUPPORTED;
	if (is_guest(c) && hidden_from_guests(function)) return NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

static void answer(struct call *c, nvmlReturn_t ret) {
	c->answered = true;
	c->ret = ret;
}

void call_open(struct call *c, const char *function, const nvmlDevice_t *device, bool whole_only, void *out, size_t size) {
	pthread_once(&once, start);
	*c = (struct call){.gpu = NODE, .slot = -1};
	if (device && is_handle(device->handle)) {
		c->gpu = device->handle->gpu;
		c->slot = device->handle->slot;
	}
	c->s = scenario_acquire();
	if (!state || !c->s) return answer(c, NVML_ERROR_DRIVER_NOT_LOADED);
	if (flag_of(c->s, NODE, "count_calls")) {
		state_lock(&state->lock);
		state_count(state, function, NODE);
		if (c->gpu >= 0) state_count(state, function, c->gpu);
		pthread_mutex_unlock(&state->lock);
	}
	struct fault f = fault_of(c->s, function, c->gpu);
	if (flag_of(c->s, NODE, "global_lock")) {
		state_lock(&state->driver_lock);
		c->holds_driver_lock = true;
	}
	if (f.delay) wait_for(f.delay);
	while (f.hang) pause();
	if (f.crash) raise(SIGSEGV);
	if (f.garbage && out) {
		fill_with_garbage(out, size);
		return answer(c, f.set ? f.ret : NVML_SUCCESS);
	}
	if (f.set && f.ret) return answer(c, f.ret);
	nvmlReturn_t ret = driver_trouble(c->s, function);
	if (!ret) ret = handle_trouble(c, function, device, whole_only);
	if (ret) answer(c, ret);
}

void call_close(struct call *c) {
	if (c->holds_driver_lock) pthread_mutex_unlock(&state->driver_lock);
	scenario_release(c->s);
}

struct state *call_state(const struct call *c) {
	state_lock(&state->lock);
	state_advance(state, c->s, monotonic());
	return state;
}

void done_with(struct state *st) { pthread_mutex_unlock(&st->lock); }

double counter_of(const struct call *c, enum rate r) {
	struct state *st = call_state(c);
	struct gpu_state *u = &st->gpu[c->gpu];
	double v = c->slot < 0 ? u->whole.sum[r] : u->slot[c->slot].sum[r];
	done_with(st);
	return v;
}

double rate_of(const struct call *c, enum rate r) {
	double rates[R_COUNT];
	struct state *st = call_state(c);
	state_rates(st, c->gpu, c->slot, rates);
	done_with(st);
	return rates[r];
}

nvmlReturn_t answer_text(const char *text, char *out, unsigned int length) {
	if (!out) return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_SUCCESS;
}

// Every name that no file models is a weak symbol that ends up here (stubs.c, generated).
nvmlReturn_t unmodelled(const char *function) {
	struct call c __attribute__((cleanup(call_close)));
	call_open(&c, function, NULL, false, NULL, 0);
	return c.answered ? c.ret : NVML_ERROR_NOT_SUPPORTED;
}
