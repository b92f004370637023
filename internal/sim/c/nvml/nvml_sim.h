// What every file of the simulated library uses to answer a call.
#ifndef NVML_SIM_H
#define NVML_SIM_H

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#include "sim.h"

#include <stdio.h>
#include <string.h>

// What an nvmlDevice_t points to. slot is -1 for a whole GPU, else which of its MIG devices.
struct nvmlDevice_st { int gpu, slot; };

// One call on its way through the library: opened by a macro below, closed
// when the function returns.
struct call {
	const struct scenario *s;
	int gpu, slot;
	nvmlReturn_t ret;
	bool answered;    // ret is the answer already: a fault, a lost GPU, ...
	bool holds_driver_lock;
};
void call_open(struct call *c, const char *function, const nvmlDevice_t *device, bool whole_only, void *out, size_t size);
void call_close(struct call *c);
struct state *call_state(const struct call *c); // locked and up to date; unlock with done_with
void done_with(struct state *st);

// A call of the node; a call on a GPU or MIG device; a call that only a whole GPU answers.
// out is what the fault "garbage" fills.
#define CALL_(device, whole_only, out, size) \
	struct call c __attribute__((cleanup(call_close))); \
	call_open(&c, __func__, device, whole_only, out, size); \
	if (c.answered) return c.ret
#define NODE_CALL(out) CALL_(NULL, false, out, sizeof *(out))
#define ANY_CALL(out) CALL_(&device, false, out, sizeof *(out)); if (!(out)) return NVML_ERROR_INVALID_ARGUMENT
#define GPU_CALL(out) CALL_(&device, true, out, sizeof *(out)); if (!(out)) return NVML_ERROR_INVALID_ARGUMENT

// NOT_SUPPORTED where the scenario says that this card or driver lacks it.
#define NEEDS(key) if (lacks(c.s, c.gpu, key)) return NVML_ERROR_NOT_SUPPORTED

// Versioned structs carry their size and version; every other is refused, as the driver does.
#define NEEDS_VERSION(got, want) if ((got) != (want)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH

nvmlReturn_t code_of(const char *word);                    // "GPU_IS_LOST", "NVML_ERROR_NOT_SUPPORTED", "15"
int driver_major(const struct call *c);                    // 580; driver.exports wins over driver.version
bool is_guest(const struct call *c);                       // a vGPU of a virtual machine
nvmlReturn_t answer_text(const char *text, char *out, unsigned int length);
bool initialised(void);
nvmlDevice_t device_handle(int gpu, int slot);
double gpu_temperature(const struct call *c);
uint64_t memory_used(const struct call *c);                // bytes, without what the driver reserves
double counter_of(const struct call *c, enum rate r);      // the integral of r
double rate_of(const struct call *c, enum rate r);
uint64_t ecc_count(const struct call *c, bool aggregate, bool uncorrected, const char *where); // where NULL: everywhere
unsigned long long throttle_reasons(const struct call *c);
unsigned pcie_generation(const struct call *c);

#endif
