// Starting and stopping the library, versions, error names, confidential computing.
#include "nvml_sim.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_int references;

bool initialised(void) { return atomic_load(&references) > 0; }

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
	NODE_CALL(&flags);
	atomic_fetch_add(&references, 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) {
	NODE_CALL((char *)NULL);
	atomic_fetch_add(&references, 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }

nvmlReturn_t nvmlShutdown(void) {
	NODE_CALL((char *)NULL);
	if (!initialised()) return NVML_ERROR_UNINITIALIZED;
	atomic_fetch_sub(&references, 1);
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result) {
	switch (result) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_TIMEOUT: return "Timeout";
	case NVML_ERROR_LIBRARY_NOT_FOUND: return "Shared Library Not Found";
	case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
	case NVML_ERROR_CORRUPTED_INFOROM: return "Corrupted infoROM";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
	case NVML_ERROR_OPERATING_SYSTEM: return "The operating system has blocked the request.";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "RM has detected an NVML/RM version mismatch.";
	case NVML_ERROR_IN_USE: return "In use by another client";
	case NVML_ERROR_MEMORY: return "Insufficient Memory";
	case NVML_ERROR_NO_DATA: return "No data";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument Version Mismatch";
	case NVML_ERROR_NOT_READY: return "Not Ready";
	case NVML_ERROR_GPU_NOT_FOUND: return "GPU Not Found";
	default: return "Unknown Error";
	}
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
	CALL_(NULL, false, version, length);
	return answer_text(text_of(c.s, NODE, "driver.version"), version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
	CALL_(NULL, false, version, length);
	char text[128];
	snprintf(text, sizeof text, "%d.%s", (int)number_of(c.s, NODE, "driver.cuda"), text_of(c.s, NODE, "driver.version"));
	return answer_text(text, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
	NODE_CALL(version);
	if (!version) return NVML_ERROR_INVALID_ARGUMENT;
	int major = 0, minor = 0;
	sscanf(text_of(c.s, NODE, "driver.cuda"), "%d.%d", &major, &minor);
	*version = major * 1000 + minor * 10;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *info, unsigned int length) {
	NODE_CALL(info);
	if (!info) return NVML_ERROR_INVALID_ARGUMENT;
	NEEDS_VERSION(info->version, nvmlSystemDriverBranchInfo_v1);
	if (length > sizeof info->branch) length = sizeof info->branch;
	return answer_text(text_of(c.s, NODE, "driver.branch"), info->branch, length);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
	CALL_(NULL, false, name, length);
	char path[64], text[256] = "";
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	FILE *f = fopen(path, "re");
	if (!f) return NVML_ERROR_NOT_FOUND;
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	if (length && strlen(text) >= length) text[length - 1] = 0;
	return answer_text(text, name, length);
}

int driver_major(const struct call *c) {
	const char *key = lacks(c->s, NODE, "driver.exports") ? "driver.version" : "driver.exports";
	return atoi(text_of(c->s, NODE, key));
}

nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state) {
	NODE_CALL(state);
	if (!state) return NVML_ERROR_INVALID_ARGUMENT;
	memset(state, 0, sizeof *state);
	state->ccFeature = flag_of(c.s, NODE, "cc.enabled");
	state->environment = state->ccFeature ? NVML_CC_SYSTEM_ENVIRONMENT_PROD : NVML_CC_SYSTEM_ENVIRONMENT_UNAVAILABLE;
	state->devToolsMode = flag_of(c.s, NODE, "cc.devtools");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *settings) {
	NODE_CALL(settings);
	if (!settings) return NVML_ERROR_INVALID_ARGUMENT;
	NEEDS_VERSION(settings->version, nvmlSystemConfComputeSettings_v1);
	settings->ccFeature = flag_of(c.s, NODE, "cc.enabled");
	settings->environment = settings->ccFeature ? NVML_CC_SYSTEM_ENVIRONMENT_PROD : NVML_CC_SYSTEM_ENVIRONMENT_UNAVAILABLE;
	settings->devToolsMode = flag_of(c.s, NODE, "cc.devtools");
	settings->multiGpuMode = (unsigned)number_of(c.s, NODE, "cc.multigpu");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int *accepting) {
	NODE_CALL(accepting);
	if (!accepting) return NVML_ERROR_INVALID_ARGUMENT;
	if (!flag_of(c.s, NODE, "cc.enabled")) return NVML_ERROR_NOT_SUPPORTED;
	*accepting = flag_of(c.s, NODE, "cc.ready");
	return NVML_SUCCESS;
}
