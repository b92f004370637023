// What the simulated library and the tool gpu-sim share: the scenario (what
// this node is) and the state (what has happened on it so far).
#ifndef SIM_H
#define SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_GPUS = 16, MAX_SLOTS = 8, MAX_LOADS = 128, MAX_STEPS = 16, MAX_EVENTS = 64, MAX_COUNTS = 4096, RING = 72 };

// A GPU number in a lookup: a real one, every GPU ("gpu.*."), or none (a key of the node).
enum { EVERY_GPU = -1, NODE = -2 };

#define NS 1000000000LL
#define MS 1000000LL
#define GPM_REFRESH (100 * MS)  // how often the driver refreshes its GPM counters
#define RING_PERIOD (140 * MS)  // one entry of the driver's utilisation ring

// ---- scenario.c: key = value, re-read when the file changes ----

struct entry {
	int gpu;           // a GPU, EVERY_GPU or NODE
	const char *name;  // the key without "gpu.N."
	const char *text;  // the value as written
	double number;     // the value as a number: with KiB/MiB/GiB/TiB and true/false resolved
	bool none;         // the value is "none": this card or driver does not have it
};

struct stamp { int64_t mtime, inode, size; };

struct scenario {
	struct stamp stamp;
	int references;
	int gpus;          // how many GPUs are described; some of them may be absent
	bool faults;       // there is at least one call.* key
	unsigned mask;     // size of the hash table, less one
	struct entry *table;
	char *text;        // what the entries point into
};

void scenario_locate(const char *dir, int64_t trust);      // once, before anything else; trust: for how long the file is not looked at again
const char *scenario_dir(void);
const struct scenario *scenario_acquire(void);             // NULL: there is none
void scenario_release(const struct scenario *s);
bool scenario_is_current(const struct scenario *s);         // the file has not changed since
const struct entry *scenario_exact(const struct scenario *s, int gpu, const char *name);
const struct entry *scenario_get(const struct scenario *s, int gpu, const char *name); // N, then *, then the default
double scenario_parse_number(const char *text);
int64_t scenario_parse_duration(const char *text);         // "5ms", "0.5s", "20s": nanoseconds

const char *text_of(const struct scenario *s, int gpu, const char *name); // "" if unset
double number_of(const struct scenario *s, int gpu, const char *name);    // 0 if unset
bool flag_of(const struct scenario *s, int gpu, const char *name);
bool lacks(const struct scenario *s, int gpu, const char *name);          // "none" or unset
double number_at(const struct scenario *s, int gpu, const char *format, int i); // "nvlink.%d.state", falling back to "nvlink.*.state"
const char *text_at(const struct scenario *s, int gpu, const char *format, int i);

// A MIG device as the scenario describes it: gi=1,ci=0,profile=3g.20gb,...
struct instance {
	bool exists;
	unsigned gi, ci, start, size, slices, ci_slices, sms;
	double fraction;   // of the whole GPU's SMs
	uint64_t memory;   // bytes
	char profile[32], uuid[96];
};
int index_of_gpu(const struct scenario *s, int gpu);        // NVML's index; -1 for an absent GPU
int gpu_of_index(const struct scenario *s, unsigned index); // -1: there is none
struct instance instance_of(const struct scenario *s, int gpu, int slot);

// ---- state.c: what runs with the clock, shared by every process of the node ----

// What is integrated over time. Ratios are 0..1, traffic is bytes/s, power W.
enum rate {
	R_UTIL, R_SM, R_OCCUPANCY, R_INTEGER, R_TENSOR, R_DFMA, R_HMMA, R_DMMA, R_IMMA, R_DRAM, R_FP64, R_FP32, R_FP16,
	R_RATIOS, // how many ratios stand above
	R_PCIE_TX = R_RATIOS, R_PCIE_RX, R_NVLINK_RX, R_NVLINK_TX, R_POWER,
	R_LOAD, // how many a load can set
	R_SW_POWER_CAP = R_LOAD, R_SW_THERMAL, R_HW_THERMAL, R_HW_POWER_BRAKE, R_SYNC_BOOST, R_BOARD_LIMIT,
	R_LOW_UTILIZATION, R_RELIABILITY, R_APP_CLOCKS, R_BASE_CLOCKS,
	R_ELAPSED, // always 1: seconds since the counters began
	R_COUNT
};
extern const char *const rate_names[R_ELAPSED]; // as scenario keys and options of the tool

struct meter { double sum[R_COUNT]; };        // integrals since the counters began: rate x seconds

struct gpu_state {
	// What the scenario says, as of state.stamp; kept here so that time that
	// has already passed is integrated with what was true then.
	double base[R_COUNT], idle_power, power_limit;
	double slot_fraction[MAX_SLOTS];
	uint32_t slots;                            // which MIG devices exist

	struct meter whole, slot[MAX_SLOTS];       // up to state.now
	struct meter gpm_whole, gpm_slot[MAX_SLOTS]; // as of the last GPM refresh
	struct { int64_t time; double util, memory, power; } ring[RING]; // means of one RING_PERIOD each
	struct meter ring_start;                   // as of ring_from
	int64_t ring_from;
	unsigned ring_next;
};

struct step { int64_t at; double rate[R_LOAD]; }; // nanoseconds after the load's start; power is what comes on top of idle

// A workload: a process that makes GPUs busy until it ends or is killed.
struct load {
	int32_t pid;                 // 0: a free place
	bool graphics;
	uint64_t started;            // the process's start time in clock ticks, since pids are used again
	int64_t begin, end;          // monotonic; end is INT64_MAX while it runs without limit
	_Atomic int64_t heartbeat;   // monotonic time of its last sign of life
	uint64_t memory;             // bytes on each GPU
	uint32_t target[MAX_GPUS];   // WHOLE, or a bit for each MIG device
	int steps;
	struct step step[MAX_STEPS];
};
#define WHOLE 0x80000000u

struct event { uint64_t type, data; int32_t gpu; uint32_t gi, ci; };

struct count { char function[60]; int32_t gpu; uint64_t calls; };

struct state {
	uint64_t magic;
	pthread_mutex_t lock, driver_lock; // driver_lock: held while a call answers, if the scenario says global_lock
	struct stamp stamp;                // the scenario that `gpu` was taken from
	int64_t now, gpm_time;             // monotonic: integrated up to, last GPM refresh
	struct gpu_state gpu[MAX_GPUS];
	int loads;                         // how many places of `load` are looked at: none behind is taken
	struct load load[MAX_LOADS];
	_Atomic uint32_t events;           // how many there have been; the futex that waiters sleep on
	struct event event[MAX_EVENTS];
	struct count count[MAX_COUNTS];
};

int64_t monotonic(void);
uint64_t process_started(int pid);                         // 0: no such process, or a zombie
struct state *state_open(const char *dir);                 // NULL with errno
void state_lock(pthread_mutex_t *m);
void state_advance(struct state *st, const struct scenario *s, int64_t now); // holding st->lock
void state_rates(const struct state *st, int gpu, int slot, double out[R_COUNT]); // slot -1: the whole GPU
void state_reap(struct state *st);                         // forget loads whose process is gone
uint64_t state_memory(const struct state *st, int gpu, int slot); // bytes used by loads
void state_event(struct state *st, struct event e);
void state_count(struct state *st, const char *function, int gpu);
void state_reset_gpu(struct state *st, int gpu);           // a GPU reset: its counters begin again

#endif
