// GPU and compute instances, the reading side: what there is, what could be.
// The profiles are those of cards with seven compute slices.
#include "nvml_sim.h"

struct nvmlGpuInstance_st { int gpu, slot; };     // slot: the first MIG device of the instance
struct nvmlComputeInstance_st { int gpu, slot; };

static struct nvmlGpuInstance_st gpu_instances[MAX_GPUS][MAX_SLOTS];
static struct nvmlComputeInstance_st compute_instances[MAX_GPUS][MAX_SLOTS];

static const struct profile {
	unsigned number, id;           // of the NVML enumeration; the id that nvidia-smi shows
	const char *prefix;            // of the name; the memory follows
	unsigned slices, size, starts; // compute slices, memory slices, possible starts as bits
} profiles[] = {
	{NVML_GPU_INSTANCE_PROFILE_1_SLICE, 19, "1g", 1, 1, 0x7f},
	{NVML_GPU_INSTANCE_PROFILE_2_SLICE, 14, "2g", 2, 2, 0x15},
	{NVML_GPU_INSTANCE_PROFILE_3_SLICE, 9, "3g", 3, 4, 0x11},
	{NVML_GPU_INSTANCE_PROFILE_4_SLICE, 5, "4g", 4, 4, 0x01},
	{NVML_GPU_INSTANCE_PROFILE_7_SLICE, 0, "7g", 7, 8, 0x01},
	{NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1, 20, "1g", 1, 1, 0x7f},
	{NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2, 15, "1g", 1, 2, 0x55},
};
enum { PROFILES = sizeof profiles / sizeof *profiles };

static const struct profile *profile_by(unsigned number, bool by_id) {
	for (int i = 0; i < PROFILES; i++)
		if ((by_id ? profiles[i].id : profiles[i].number) == number) return &profiles[i];
	return NULL;
}

static const struct profile *profile_of(const struct instance *m) {
	bool media = strstr(m->profile, "+me") != NULL;
	for (int i = 0; i < PROFILES; i++)
		if (profiles[i].slices == m->slices && profiles[i].size == m->size && media == (profiles[i].id == 20)) return &profiles[i];
	return NULL;
}

static bool fits(unsigned taken, const struct profile *p, unsigned start) {
	return p->starts >> start & 1 && !(taken & ((1u << p->size) - 1) << start);
}

static unsigned taken_slices(const struct call *c) {
	unsigned taken = 0;
	for (int i = 0; i < MAX_SLOTS; i++) {
		struct instance m = instance_of(c->s, c->gpu, i);
		if (m.exists) taken |= ((1u << m.size) - 1) << m.start;
	}
	return taken;
}

// The memory slice of the smallest instances, in the names' unit: a 40 GB card's is 5, an 80 GB card's 10.
static unsigned slice_gb(const struct call *c) {
	return (unsigned)(number_of(c->s, c->gpu, "memory.total") / (1 << 30) / number_of(c->s, c->gpu, "mig.memory_slices") + 0.999);
}

#define NEEDS_MIG_MODE if (!flag_of(c.s, c.gpu, "mig.mode")) return NVML_ERROR_NOT_SUPPORTED

#define FILL(info, p) do { \
		(info)->id = (p)->id; \
		(info)->sliceCount = (p)->slices; \
		(info)->instanceCount = (unsigned)__builtin_popcount((p)->starts); \
		(info)->multiprocessorCount = (p)->slices * (unsigned)number_of(c.s, c.gpu, "mig.sms_per_slice"); \
		(info)->copyEngineCount = (p)->slices; \
		(info)->decoderCount = (p)->slices / 2; \
		(info)->encoderCount = (info)->jpegCount = (info)->ofaCount = 0; \
		(info)->memorySizeMB = (unsigned long long)(number_of(c.s, c.gpu, "memory.total") / (1 << 20) / number_of(c.s, c.gpu, "mig.memory_slices") * (p)->size); \
	} while (0)

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int number, nvmlGpuInstanceProfileInfo_t *info) {
	GPU_CALL(info);
	NEEDS_MIG_MODE;
	if (number >= NVML_GPU_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	const struct profile *p = profile_by(number, false);
	if (!p) return NVML_ERROR_NOT_SUPPORTED; // a hole in the enumeration
	FILL(info, p);
	info->isP2pSupported = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int number, nvmlGpuInstanceProfileInfo_v2_t *info) {
	GPU_CALL(info);
	bool v3 = info->version == nvmlGpuInstanceProfileInfo_v3;
	if (!v3) NEEDS_VERSION(info->version, nvmlGpuInstanceProfileInfo_v2);
	NEEDS_MIG_MODE;
	if (number >= NVML_GPU_INSTANCE_PROFILE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	const struct profile *p = profile_by(number, false);
	if (!p) return NVML_ERROR_NOT_SUPPORTED;
	char name[64];
	snprintf(name, sizeof name, "MIG %s.%ugb%s", p->prefix, slice_gb(&c) * p->size, p->id == 20 ? "+me" : "");
	if (v3) {
		nvmlGpuInstanceProfileInfo_v3_t *out = (nvmlGpuInstanceProfileInfo_v3_t *)info;
		FILL(out, p);
		out->capabilities = 0;
		snprintf(out->name, sizeof out->name, "%s", name);
		return NVML_SUCCESS;
	}
	FILL(info, p);
	info->isP2pSupported = 0;
	snprintf(info->name, sizeof info->name, "%s", name);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *placements, unsigned int *count) {
	GPU_CALL(count);
	NEEDS_MIG_MODE;
	const struct profile *p = profile_by(id, true);
	if (!p) return NVML_ERROR_NOT_SUPPORTED;
	unsigned n = 0, room = *count;
	for (unsigned start = 0; start < 8; start++) {
		if (!(p->starts >> start & 1)) continue;
		if (placements && n < room) placements[n] = (nvmlGpuInstancePlacement_t){start, p->size};
		n++;
	}
	*count = n;
	return placements && room < n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int id, nvmlGpuInstancePlacement_t *placements, unsigned int *count) {
	return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id, unsigned int *count) {
	GPU_CALL(count);
	NEEDS_MIG_MODE;
	const struct profile *p = profile_by(id, true);
	if (!p) return NVML_ERROR_NOT_SUPPORTED;
	unsigned taken = taken_slices(&c);
	*count = 0;
	for (unsigned start = 0; start < 8; start++) {
		if (!fits(taken, p, start)) continue;
		taken |= ((1u << p->size) - 1) << start;
		++*count;
	}
	return NVML_SUCCESS;
}

// Is this MIG device the first of its GPU instance?
static bool first_of_instance(const struct call *c, int slot, const struct instance *m) {
	for (int i = 0; i < slot; i++) {
		struct instance other = instance_of(c->s, c->gpu, i);
		if (other.exists && other.gi == m->gi) return false;
	}
	return m->exists;
}

static nvmlGpuInstance_t gpu_instance(int gpu, int slot) {
	gpu_instances[gpu][slot] = (struct nvmlGpuInstance_st){gpu, slot};
	return (nvmlGpuInstance_t){&gpu_instances[gpu][slot]};
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instances, unsigned int *count) {
	GPU_CALL(count);
	NEEDS_MIG_MODE;
	*count = 0;
	for (int i = 0; i < MAX_SLOTS; i++) {
		struct instance m = instance_of(c.s, c.gpu, i);
		const struct profile *p = m.exists ? profile_of(&m) : NULL;
		if (p && p->id == id && first_of_instance(&c, i, &m)) instances[(*count)++] = gpu_instance(c.gpu, i);
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance) {
	GPU_CALL(instance);
	NEEDS_MIG_MODE;
	for (int i = 0; i < MAX_SLOTS; i++) {
		struct instance m = instance_of(c.s, c.gpu, i);
		if (!m.exists || m.gi != id) continue;
		*instance = gpu_instance(c.gpu, i);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

// A call on an instance is one on its GPU.
#define INSTANCE_CALL(which, out) \
	if (!(which).handle || !(out)) return NVML_ERROR_INVALID_ARGUMENT; \
	nvmlDevice_t device = device_handle((which).handle->gpu, -1); \
	CALL_(&device, true, out, sizeof *(out)); \
	struct instance m = instance_of(c.s, c.gpu, (which).handle->slot); \
	if (!m.exists) return NVML_ERROR_NOT_FOUND

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info) {
	INSTANCE_CALL(instance, info);
	const struct profile *p = profile_of(&m);
	*info = (nvmlGpuInstanceInfo_t){device, m.gi, p ? p->id : 0, {m.start, m.size}};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned int id, nvmlComputeInstance_t *compute) {
	INSTANCE_CALL(instance, compute);
	for (int i = 0; i < MAX_SLOTS; i++) {
		struct instance other = instance_of(c.s, c.gpu, i);
		if (!other.exists || other.gi != m.gi || other.ci != id) continue;
		compute_instances[c.gpu][i] = (struct nvmlComputeInstance_st){c.gpu, i};
		compute->handle = &compute_instances[c.gpu][i];
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info) {
	INSTANCE_CALL(compute, info);
	*info = (nvmlComputeInstanceInfo_t){device, gpu_instance(c.gpu, compute.handle->slot), m.ci, m.ci_slices - 1, {0, m.ci_slices}};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info) {
	return nvmlComputeInstanceGetInfo_v2(compute, info);
}
