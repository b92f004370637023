// gpu-sim load: a workload. It marks its GPUs as busy in the shared state,
// gives a sign of life every few milliseconds, and does nothing else; when it
// ends or is killed, whoever looks next finds it gone.
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define HEARTBEAT (10 * MS)

static volatile sig_atomic_t stopped;
static void on_signal(int signal) { stopped = signal; }

// What the command line said of one step; NAN where it said nothing.
struct wish { double at, rate[R_LOAD]; };

static void wish_set(struct wish *w, const char *name, const char *value) {
	for (int r = 0; r < R_LOAD; r++) {
		if (strcmp(rate_names[r], name)) continue;
		w->rate[r] = scenario_parse_number(value);
		if (r < R_RATIOS && w->rate[r] > 1) w->rate[r] /= 100; // percent
		return;
	}
	fail("load: %s is nothing that a workload has", name);
}

// "0:sm=0.9,util=100;10:sm=0.1": what changes, so many seconds after the start.
static int parse_steps(char *text, struct wish *w) {
	int n = 0;
	struct wish last = w[0];
	for (char *save, *part = strtok_r(text, ";", &save); part; part = strtok_r(NULL, ";", &save)) {
		char *colon = strchr(part, ':'), *inner;
		if (!colon || n == MAX_STEPS) fail("load: --steps: %s", colon ? "too many" : part);
		last.at = strtod(part, NULL);
		for (char *pair = strtok_r(colon + 1, ",", &inner); pair; pair = strtok_r(NULL, ",", &inner)) {
			char *equals = strchr(pair, '=');
			if (!equals) fail("load: --steps: %s: not name=value", pair);
			*equals = 0;
			wish_set(&last, pair, equals + 1);
		}
		w[n++] = last;
	}
	return n;
}

static void or_else(double *v, double otherwise) { if (isnan(*v)) *v = otherwise; }

// What was not said is derived from what was; power comes on top of idle.
static struct step complete(const struct scenario *s, int gpu, struct wish w) {
	double *r = w.rate, idle = number_of(s, gpu, "power"), limit = number_of(s, gpu, "power.limit");
	or_else(&r[R_SM], 0);
	or_else(&r[R_UTIL], r[R_SM] > 0);
	or_else(&r[R_TENSOR], 0);
	or_else(&r[R_OCCUPANCY], r[R_SM] * 0.5);
	or_else(&r[R_DRAM], r[R_SM] * 0.4);
	bool pipe = r[R_DFMA] > 0 || r[R_DMMA] > 0 || r[R_IMMA] > 0;
	or_else(&r[R_HMMA], pipe ? 0 : r[R_TENSOR]);
	or_else(&r[R_POWER], idle + (limit - idle) * fmin(1, 0.10 * r[R_UTIL] + 0.45 * r[R_SM] + 0.30 * r[R_TENSOR] + 0.25 * r[R_DRAM]));
	for (int i = 0; i < R_LOAD; i++) or_else(&r[i], 0);
	r[R_POWER] -= idle;
	struct step step = {.at = (int64_t)(w.at * NS)};
	memcpy(step.rate, r, sizeof step.rate);
	return step;
}

static void aim_at(const struct scenario *s, struct load *l, int gpu, int slot) {
	if (flag_of(s, gpu, "lost")) fail("load: GPU %d is lost", gpu);
	if (slot < 0 && flag_of(s, gpu, "mig.mode")) // as CUDA: the first MIG device
		for (slot = 0; slot < MAX_SLOTS - 1 && !instance_of(s, gpu, slot).exists; slot++) {}
	l->target[gpu] |= slot < 0 ? WHOLE : 1u << slot;
}

// A job whose device cgroup keeps it from a card does not count it, as with CUDA.
static bool allowed(const struct scenario *s, int gpu) {
	int fd = open(change("%s/root/dev/nvidia%d", scenario_dir(), (int)number_of(s, gpu, "minor")), O_RDWR | O_CLOEXEC);
	if (fd < 0) return errno != EPERM;
	close(fd);
	return true;
}

static int visible(const struct scenario *s, unsigned index) {
	for (unsigned i = 0;; i++) {
		int gpu = gpu_of_index(s, i);
		if (gpu < 0 || (allowed(s, gpu) && index-- == 0)) return gpu;
	}
}

static bool aim_at_token(const struct scenario *s, struct load *l, const char *token) {
	if (strspn(token, "0123456789") == strlen(token)) {
		int gpu = visible(s, (unsigned)atoi(token));
		if (gpu >= 0) aim_at(s, l, gpu, -1);
		return gpu >= 0;
	}
	for (int g = 0; g < s->gpus; g++) {
		const char *uuid = text_of(s, g, "uuid");
		if (!strncmp(token, "GPU-", 4) && !strncmp(uuid, token, strlen(token))) return aim_at(s, l, g, -1), true;
		for (int i = 0; i < MAX_SLOTS; i++) {
			struct instance m = instance_of(s, g, i);
			if (!m.exists) continue;
			char *old = change("MIG-%s/%u/%u", uuid, m.gi, m.ci);
			if (!strcmp(token, old) || (!strncmp(token, "MIG-", 4) && *m.uuid && !strncmp(m.uuid, token, strlen(token))))
				return aim_at(s, l, g, i), true;
		}
	}
	return false;
}

static void aim(const struct scenario *s, struct load *l, const char *devices) {
	if (!devices) {
		for (unsigned i = 0; visible(s, i) >= 0; i++) aim_at(s, l, visible(s, i), -1);
		return;
	}
	char *list = strdup(devices), *save;
	for (char *t = strtok_r(list, ", ", &save); t; t = strtok_r(NULL, ", ", &save))
		if (!aim_at_token(s, l, t)) fail("load: no device %s (CUDA_VISIBLE_DEVICES=%s)", t, devices);
}

static struct load *begin(const struct scenario *s, const struct load *wanted) {
	struct state *st = node_lock(s);
	state_reap(st);
	for (int i = 0; i < MAX_LOADS; i++) {
		struct load *l = &st->load[i];
		if (l->pid) continue;
		*l = *wanted;
		l->begin = l->heartbeat = st->now;
		l->end = wanted->end == INT64_MAX ? INT64_MAX : st->now + wanted->end;
		l->started = process_started(getpid());
		l->pid = getpid();
		if (i >= st->loads) st->loads = i + 1;
		node_unlock(st);
		return l;
	}
	node_unlock(st);
	fail("load: more than %d workloads on this node", MAX_LOADS);
}

static void finish(const struct scenario *s, struct load *l) {
	struct state *st = node_lock(s);
	if (l->pid == getpid()) l->pid = 0;
	node_unlock(st);
}

int load_main(int argc, char **argv) {
	const struct scenario *s = scenario_now();
	struct wish wish[MAX_STEPS];
	struct load want = {.end = INT64_MAX};
	const char *devices = getenv("CUDA_VISIBLE_DEVICES");
	char *steps = NULL;
	wish[0].at = 0;
	for (int r = 0; r < R_LOAD; r++) wish[0].rate[r] = NAN;
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];
		if (strncmp(name, "--", 2) || !value) fail("load: %s: options are --name value", name);
		name += 2;
		if (!strcmp(name, "gpus")) devices = value;
		else if (!strcmp(name, "for")) want.end = scenario_parse_duration(value);
		else if (!strcmp(name, "steps")) steps = argv[i + 1];
		else if (!strcmp(name, "memory")) want.memory = (uint64_t)scenario_parse_number(value);
		else if (!strcmp(name, "type")) want.graphics = !strcmp(value, "graphics");
		else wish_set(&wish[0], name, value);
	}
	want.steps = steps ? parse_steps(steps, wish) : 1;
	aim(s, &want, devices);
	int first = -1;
	for (int g = MAX_GPUS - 1; g >= 0; g--)
		if (want.target[g]) first = g;
	if (first < 0) fail("load: no GPU is visible");
	for (int i = 0; i < want.steps; i++) want.step[i] = complete(s, first, wish[i]);

	struct sigaction act = {.sa_handler = on_signal};
	int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGXCPU};
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &act, NULL);
	// A busy machine must not delay the signs of life: they tell when it was killed.
	if (sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1})) setpriority(PRIO_PROCESS, 0, -20);
	struct load *l = begin(s, &want);
	printf("gpu-sim: busy on");
	for (int g = 0; g < s->gpus; g++)
		if (want.target[g]) printf(" GPU %d", index_of_gpu(s, g));
	printf("\n");
	fflush(stdout);
	while (!stopped && l->pid == getpid() && monotonic() < l->end) {
		l->heartbeat = monotonic();
		struct timespec pause = {0, HEARTBEAT};
		nanosleep(&pause, NULL);
	}
	finish(s, l);
	return stopped ? 128 + stopped : 0;
}
