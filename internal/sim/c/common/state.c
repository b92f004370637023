// The shared state file: counters that advance with the clock and with load.
// Every process of the node maps it; whoever asks first brings it up to date.
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAGIC (0x67707573696d0000ULL + sizeof(struct state))
#define STALE (40 * MS)  // a load without a heartbeat for so long is looked for in /proc

const char *const rate_names[R_ELAPSED] = {
	"util", "sm", "occupancy", "integer", "tensor", "dfma", "hmma", "dmma", "imma", "dram", "fp64", "fp32", "fp16",
	"pcie_tx", "pcie_rx", "nvlink_rx", "nvlink_tx", "power",
	"throttle.sw_power_cap", "throttle.sw_thermal", "throttle.hw_thermal", "throttle.hw_power_brake",
	"throttle.sync_boost", "throttle.board_limit", "throttle.low_utilization", "throttle.reliability",
	"throttle.app_clocks", "throttle.base_clocks",
};

static int64_t clock_ns(clockid_t id) {
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

int64_t monotonic(void) { return clock_ns(CLOCK_MONOTONIC); }

uint64_t process_started(int pid) {
	char path[64], buf[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) return 0;
	ssize_t n = read(fd, buf, sizeof buf - 1);
	close(fd);
	if (n <= 0) return 0;
	buf[n] = 0;
	char *p = strrchr(buf, ')'), status = 0;
	unsigned long long started = 0;
	if (!p || sscanf(p + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &status, &started) != 2)
		return 0;
	return status == 'Z' || status == 'X' ? 0 : started;
}

static void mutex_create(pthread_mutex_t *m) {
	pthread_mutexattr_t a;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST); // its holder may be killed
	pthread_mutex_init(m, &a);
	pthread_mutexattr_destroy(&a);
}

void state_lock(pthread_mutex_t *m) {
	if (pthread_mutex_lock(m) == EOWNERDEAD) pthread_mutex_consistent(m);
}

struct state *state_open(const char *dir) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/state", dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) return NULL;
	flock(fd, LOCK_EX);
	struct stat info;
	fstat(fd, &info);
	bool fresh = info.st_size != sizeof(struct state);
	if (fresh) {
		fchmod(fd, 0666);
		if (ftruncate(fd, 0) || ftruncate(fd, sizeof(struct state))) { close(fd); return NULL; }
	}
	struct state *st = mmap(NULL, sizeof *st, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (st != MAP_FAILED && st->magic != MAGIC) {
		memset(st, 0, sizeof *st);
		mutex_create(&st->lock);
		mutex_create(&st->driver_lock);
		st->now = monotonic();
		st->gpm_time = st->now / GPM_REFRESH * GPM_REFRESH;
		st->magic = MAGIC;
	}
	flock(fd, LOCK_UN); // closing is not enough: the mapping keeps the file open
	close(fd);
	return st == MAP_FAILED ? NULL : st;
}

// Takes from the scenario what is integrated from now on.
static void adopt(struct state *st, const struct scenario *s) {
	for (int g = 0; g < MAX_GPUS; g++) {
		struct gpu_state *u = &st->gpu[g];
		u->slots = 0;
		if (g >= s->gpus) continue;
		for (int r = 0; r < R_ELAPSED; r++) u->base[r] = number_of(s, g, rate_names[r]);
		u->idle_power = u->base[R_POWER];
		u->power_limit = number_of(s, g, "power.limit");
		for (int i = 0; i < MAX_SLOTS; i++) {
			struct instance m = instance_of(s, g, i);
			if (!m.exists) continue;
			u->slots |= 1u << i;
			u->slot_fraction[i] = m.fraction;
		}
	}
	st->stamp = s->stamp;
}

static const struct step *step_at(const struct load *l, int64_t t) {
	int i = 0;
	while (i + 1 < l->steps && l->begin + l->step[i + 1].at <= t) i++;
	return &l->step[i];
}

static bool runs(const struct load *l, int64_t t) { return l->pid && l->begin <= t && t < l->end; }

// fmin and fmax would be calls: this runs for each GPU and step of time.
static double ratio(double v) { return v > 0 ? v < 1 ? v : 1 : 0; }

static void clamp(const struct gpu_state *u, double *out) {
	for (int r = 0; r < R_RATIOS; r++) out[r] = ratio(out[r]);
	if (out[R_POWER] > u->power_limit) {
		out[R_POWER] = u->power_limit;
		out[R_SW_POWER_CAP] = 1;
	}
	for (int r = R_SW_POWER_CAP; r < R_COUNT; r++) out[r] = ratio(out[r]);
}

static void add(double *out, const struct step *s, double share) {
	for (int r = 0; r < R_LOAD; r++) out[r] += s->rate[r] * share;
}

// The rates of a GPU or of one of its MIG devices at a moment.
static void rates_at(const struct state *st, int gpu, int slot, int64_t t, double out[R_COUNT]) {
	const struct gpu_state *u = &st->gpu[gpu];
	if (slot < 0) memcpy(out, u->base, sizeof u->base);
	else memset(out, 0, sizeof(double) * R_COUNT);
	for (int i = 0; i < st->loads; i++) {
		const struct load *l = &st->load[i];
		if (!runs(l, t) || !l->target[gpu]) continue;
		const struct step *now = step_at(l, t);
		if (l->target[gpu] & WHOLE) {
			if (slot < 0) add(out, now, 1);
			continue;
		}
		for (int k = 0; k < MAX_SLOTS; k++) {
			if (!(l->target[gpu] >> k & 1)) continue;
			if (slot < 0) add(out, now, u->slot_fraction[k]);
			else if (slot == k) add(out, now, 1);
		}
	}
	clamp(u, out);
	out[R_ELAPSED] = 1;
}

void state_rates(const struct state *st, int gpu, int slot, double out[R_COUNT]) { rates_at(st, gpu, slot, st->now, out); }

// A killed workload ends half a heartbeat after its last one.
static void settle_end(struct load *l, int64_t now, bool look) {
	if (!l->pid || l->end <= now || (!look && now - l->heartbeat < STALE)) return;
	if (process_started(l->pid) != l->started) l->end = l->heartbeat + 5 * MS < now ? l->heartbeat + 5 * MS : now;
}

static int64_t earlier(int64_t a, int64_t b, int64_t after) { return b > after && b < a ? b : a; }

// The next moment after t at which a rate changes or a snapshot is due.
static int64_t next_change(const struct state *st, int64_t t, int64_t now) {
	int64_t next = now;
	next = earlier(next, now / GPM_REFRESH * GPM_REFRESH, t);
	int64_t ring_from = now - RING * RING_PERIOD > t ? now - RING * RING_PERIOD : t;
	next = earlier(next, (ring_from / RING_PERIOD + 1) * RING_PERIOD, t);
	for (int i = 0; i < st->loads; i++) {
		const struct load *l = &st->load[i];
		if (!l->pid) continue;
		next = earlier(next, l->begin, t);
		next = earlier(next, l->end, t);
		for (int k = 1; k < l->steps; k++) next = earlier(next, l->begin + l->step[k].at, t);
	}
	return next;
}

static void integrate(struct meter *m, const double rate[R_COUNT], double seconds) {
	for (int r = 0; r < R_COUNT; r++) m->sum[r] += rate[r] * seconds;
}

static void ring_push(struct gpu_state *u, int64_t t) {
	double s = (double)(t - u->ring_from) / NS;
	unsigned i = u->ring_next++ % RING;
	u->ring[i].time = t;
	u->ring[i].util = fmin(1, (u->whole.sum[R_UTIL] - u->ring_start.sum[R_UTIL]) / s);
	u->ring[i].memory = fmin(1, (u->whole.sum[R_DRAM] - u->ring_start.sum[R_DRAM]) / s);
	u->ring[i].power = fmin(u->power_limit, (u->whole.sum[R_POWER] - u->ring_start.sum[R_POWER]) / s);
}

static void run_until(struct state *st, int64_t now) {
	if (now < st->now) { // another boot's state: the clock began again
		st->now = now;
		memset(st->load, 0, sizeof st->load);
		st->loads = 0;
	}
	for (int i = 0; i < st->loads; i++) settle_end(&st->load[i], now, false);
	for (int64_t t = st->now, next; t < now; t = next) {
		next = next_change(st, t, now);
		for (int g = 0; g < MAX_GPUS; g++) {
			struct gpu_state *u = &st->gpu[g];
			if (u->power_limit == 0) continue; // not in the scenario
			double rate[R_COUNT];
			rates_at(st, g, -1, t, rate);
			integrate(&u->whole, rate, (double)(next - t) / NS);
			for (int i = 0; i < MAX_SLOTS; i++) {
				if (!(u->slots >> i & 1)) continue;
				rates_at(st, g, i, t, rate);
				integrate(&u->slot[i], rate, (double)(next - t) / NS);
			}
			if (next % GPM_REFRESH == 0) {
				u->gpm_whole = u->whole;
				memcpy(u->gpm_slot, u->slot, sizeof u->slot);
			}
			if (next % RING_PERIOD == 0) {
				ring_push(u, next);
				u->ring_start = u->whole;
				u->ring_from = next;
			}
		}
		if (next % GPM_REFRESH == 0) st->gpm_time = next;
		st->now = next;
	}
	for (int i = 0; i < st->loads; i++)
		if (st->load[i].pid && st->load[i].end <= now) st->load[i].pid = 0;
	while (st->loads > 0 && !st->load[st->loads - 1].pid) st->loads--;
}

void state_advance(struct state *st, const struct scenario *s, int64_t now) {
	if (memcmp(&st->stamp, &s->stamp, sizeof s->stamp) && scenario_is_current(s)) { // not by a call that began before an edit
		int64_t changed = now - (clock_ns(CLOCK_REALTIME) - s->stamp.mtime);
		if (changed > st->now && changed < now) run_until(st, changed);
		adopt(st, s);
	}
	run_until(st, now);
}

void state_reap(struct state *st) {
	for (int i = 0; i < st->loads; i++) {
		settle_end(&st->load[i], st->now, true);
		if (st->load[i].pid && st->load[i].end <= st->now) st->load[i].pid = 0;
	}
}

uint64_t state_memory(const struct state *st, int gpu, int slot) {
	uint64_t used = 0;
	for (int i = 0; i < st->loads; i++) {
		const struct load *l = &st->load[i];
		if (!runs(l, st->now) || !l->target[gpu]) continue;
		if (slot >= 0) used += l->target[gpu] >> slot & 1 ? l->memory : 0;
		else if (l->target[gpu] & WHOLE) used += l->memory;
		else used += l->memory * (uint64_t)__builtin_popcount(l->target[gpu]);
	}
	return used;
}

void state_event(struct state *st, struct event e) {
	st->event[st->events % MAX_EVENTS] = e;
	st->events++;
	syscall(SYS_futex, &st->events, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void state_count(struct state *st, const char *function, int gpu) {
	unsigned h = 2166136261u + (unsigned)(gpu + 2) * 977;
	for (const char *p = function; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
	for (unsigned tries = 0; tries < MAX_COUNTS; tries++, h++) {
		struct count *c = &st->count[h % MAX_COUNTS];
		if (!c->function[0]) {
			snprintf(c->function, sizeof c->function, "%s", function);
			c->gpu = gpu;
		} else if (c->gpu != gpu || strcmp(c->function, function)) continue;
		c->calls++;
		return;
	}
}

void state_reset_gpu(struct state *st, int gpu) {
	struct gpu_state *u = &st->gpu[gpu];
	memset(&u->whole, 0, sizeof u->whole);
	memset(u->slot, 0, sizeof u->slot);
	memset(&u->gpm_whole, 0, sizeof u->gpm_whole);
	memset(u->gpm_slot, 0, sizeof u->gpm_slot);
	memset(&u->ring_start, 0, sizeof u->ring_start);
}
