// gpu-sim: changes a simulated node and puts load on it.
#include "tool.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: gpu-sim [--dir NODE] COMMAND\n"
	"  load [--sm 0.82] [--tensor 0.46] [--util 1] [--occupancy R] [--dram R] [--integer R] [--fp16|fp32|fp64 R]\n"
	"       [--hmma|imma|dmma|dfma R] [--power WATT] [--memory 20GiB] [--pcie_tx|pcie_rx|nvlink_tx|nvlink_rx BYTES/S]\n"
	"       [--gpus 0,1] [--for 20s] [--steps \"0:sm=0.9,util=100;10:sm=0.1\"] [--type graphics]\n"
	"                          be a workload on the GPUs of CUDA_VISIBLE_DEVICES until it is over or killed\n"
	"  set KEY=VALUE...        change the scenario (KEYS.md)\n"
	"  unset KEY...            back to the default\n"
	"  xid GPU CODE [TEXT]     the kernel's line and NVML's event\n"
	"  kmsg TEXT               a raw line in the kernel log\n"
	"  ecc GPU [--uncorrected N] [--corrected N] [--location dram|sram|sram_parity]\n"
	"                          add ECC errors, volatile and aggregate\n"
	"  clear GPU|all           reset a GPU: not lost, volatile counters zero, no recovery action\n"
	"  calls [--reset]         what has been called since count_calls=true\n"
	"  sync                    after editing the scenario by hand: counters and root follow\n";

static struct state *state;

void fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	int error = errno;
	fputs("gpu-sim: error: ", stderr);
	errno = error;
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

const struct scenario *scenario_now(void) {
	const struct scenario *s = scenario_acquire();
	if (!s) fail("%s/scenario: %m", scenario_dir());
	return s;
}

struct state *node_lock(const struct scenario *s) {
	if (!state && !(state = state_open(scenario_dir()))) fail("%s/state: %m", scenario_dir());
	state_lock(&state->lock);
	state_advance(state, s, monotonic());
	return state;
}

void node_unlock(struct state *st) { pthread_mutex_unlock(&st->lock); }

int gpu_argument(const struct scenario *s, const char *text) {
	char *end;
	long gpu = strtol(text, &end, 10);
	if (*end || end == text || gpu < 0 || gpu >= s->gpus) fail("%s: no such GPU", text);
	return (int)gpu;
}

static void add_errors(const struct scenario *s, int gpu, const char *kind, const char *where, const char *count) {
	char *list[2];
	const char *lives[] = {"volatile", "aggregate"};
	for (int i = 0; i < 2; i++) {
		char *key = change("ecc.%s.%s.%s", lives[i], kind, where);
		list[i] = change("gpu.%d.%s=%.0f", gpu, key, number_of(s, gpu, key) + scenario_parse_number(count));
	}
	edit(2, list);
}

static int ecc(int argc, char **argv) {
	if (argc < 4) fail("ecc GPU --uncorrected N [--location dram|sram]");
	const struct scenario *s = scenario_now();
	int gpu = gpu_argument(s, argv[1]);
	const char *where = "dram", *corrected = NULL, *uncorrected = NULL;
	for (int i = 2; i < argc; i += 2) {
		if (!argv[i + 1]) fail("ecc: %s: no value", argv[i]);
		if (!strcmp(argv[i], "--location")) where = argv[i + 1];
		else if (!strcmp(argv[i], "--corrected")) corrected = argv[i + 1];
		else if (!strcmp(argv[i], "--uncorrected")) uncorrected = argv[i + 1];
		else fail("ecc: %s: unknown option", argv[i]);
	}
	if (corrected) add_errors(s, gpu, "corrected", where, corrected);
	if (uncorrected) add_errors(s, gpu, "uncorrected", where, uncorrected);
	return 0;
}

// A GPU reset: what waited for one takes place, what began with the driver begins again.
static void clear(const struct scenario *s, int gpu) {
	static const char *const zero[] = {
		"lost", "recovery", "remap.pending", "repair.channel", "repair.tpc", "remap.inactive.correctable", "remap.inactive.uncorrectable",
		"ecc.volatile.corrected.dram", "ecc.volatile.corrected.sram", "ecc.volatile.uncorrected.dram",
		"ecc.volatile.uncorrected.sram", "ecc.volatile.uncorrected.sram_parity",
	};
	char *list[32];
	int n = 0;
	for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
		if (flag_of(s, gpu, zero[i])) list[n++] = change("gpu.%d.%s=0", gpu, zero[i]);
	for (const char *mode = "ecc"; mode; mode = strcmp(mode, "ecc") ? NULL : "mig") {
		char *pending = change("%s.pending", mode);
		if (lacks(s, gpu, pending)) continue;
		list[n++] = change("gpu.%d.%s=%s", gpu, strcmp(mode, "ecc") ? "mig.mode" : mode, text_of(s, gpu, pending));
		list[n++] = change("gpu.%d.%s=none", gpu, pending);
	}
	for (int i = 0; i < MAX_SLOTS; i++) // no instance outlives a reset
		if (instance_of(s, gpu, i).exists) list[n++] = change("gpu.%d.mig.%d", gpu, i);
	edit(n, list);
	struct state *st = node_lock(scenario_now());
	state_reset_gpu(st, gpu);
	node_unlock(st);
}

static int calls(bool reset) {
	struct state *st = node_lock(scenario_now());
	for (int i = 0; i < MAX_COUNTS; i++) {
		struct count *c = &st->count[i];
		if (!c->calls) continue;
		if (!reset && c->gpu >= 0) printf("%s gpu=%d %llu\n", c->function, c->gpu, (unsigned long long)c->calls);
		else if (!reset) printf("%s %llu\n", c->function, (unsigned long long)c->calls);
	}
	if (reset) memset(st->count, 0, sizeof st->count);
	node_unlock(st);
	return 0;
}

static int run(int argc, char **argv) {
	const char *command = argv[0];
	if (!strcmp(command, "load")) return load_main(argc, argv);
	if (!strcmp(command, "set") || !strcmp(command, "unset")) {
		for (int i = 1; i < argc; i++)
			if ((strchr(argv[i], '=') != NULL) != !strcmp(command, "set")) fail("%s: %s: %s", command, argv[i], strcmp(command, "set") ? "only the key" : "key=value");
		edit(argc - 1, argv + 1);
		return 0;
	}
	if (!strcmp(command, "xid") && argc >= 3) {
		const struct scenario *s = scenario_now();
		xid(s, gpu_argument(s, argv[1]), atoi(argv[2]), argc > 3 ? argv[3] : NULL);
		return 0;
	}
	if (!strcmp(command, "kmsg") && argc == 2) return kernel_log(argv[1]), 0;
	if (!strcmp(command, "ecc")) return ecc(argc, argv);
	if (!strcmp(command, "clear") && argc == 2) {
		const struct scenario *s = scenario_now();
		int only = strcmp(argv[1], "all") ? gpu_argument(s, argv[1]) : -1;
		for (int g = 0; g < s->gpus; g++)
			if (only < 0 || g == only) clear(s, g);
		return 0;
	}
	if (!strcmp(command, "calls")) return calls(argc > 1 && !strcmp(argv[1], "--reset"));
	if (!strcmp(command, "sync")) return edit(0, NULL), 0;
	fputs(usage, stderr);
	return 2;
}

int main(int argc, char **argv) {
	char dir[PATH_MAX] = "";
	int first = 1;
	if (argc > 2 && !strcmp(argv[1], "--dir")) {
		snprintf(dir, sizeof dir, "%s", argv[2]);
		first = 3;
	} else {
		ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
		dir[n > 0 ? n : 0] = 0;
		char *slash = strrchr(dir, '/');
		if (slash) *slash = 0;
	}
	if (argc <= first) {
		fputs(usage, stderr);
		return 2;
	}
	if (!strcmp(argv[first], "help") || !strcmp(argv[first], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	scenario_locate(dir, 0);
	return run(argc - first, argv + first);
}
