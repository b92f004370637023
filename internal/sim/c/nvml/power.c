// Power, energy, temperature.
#include "nvml_sim.h"

#define NEEDS_POWER if (!flag_of(c.s, c.gpu, "power.supported")) return NVML_ERROR_NOT_SUPPORTED

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatt) {
	GPU_CALL(milliwatt);
	NEEDS_POWER;
	*milliwatt = (unsigned)(rate_of(&c, R_POWER) * 1000 + 0.5);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoule) {
	GPU_CALL(millijoule);
	NEEDS_POWER;
	*millijoule = (unsigned long long)(counter_of(&c, R_POWER) * 1000);
	return NVML_SUCCESS;
}

#define LIMIT(function, key) \
	nvmlReturn_t function(nvmlDevice_t device, unsigned int *milliwatt) { \
		GPU_CALL(milliwatt); \
		NEEDS_POWER; \
		*milliwatt = (unsigned)(number_of(c.s, c.gpu, key) * 1000); \
		return NVML_SUCCESS; \
	}
LIMIT(nvmlDeviceGetEnforcedPowerLimit, "power.limit")
LIMIT(nvmlDeviceGetPowerManagementLimit, "power.limit")
LIMIT(nvmlDeviceGetPowerManagementDefaultLimit, "power.limit.default")

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min, unsigned int *max) {
	GPU_CALL(min);
	NEEDS_POWER;
	if (!max) return NVML_ERROR_INVALID_ARGUMENT;
	*min = (unsigned)(number_of(c.s, c.gpu, "power.limit.min") * 1000);
	*max = (unsigned)(number_of(c.s, c.gpu, "power.limit.max") * 1000);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t *mode) {
	GPU_CALL(mode);
	*mode = (nvmlEnableState_t)flag_of(c.s, c.gpu, "power.supported");
	return NVML_SUCCESS;
}

// Unless the scenario fixes it, the temperature follows the power.
double gpu_temperature(const struct call *c) {
	if (!lacks(c->s, c->gpu, "temperature")) return number_of(c->s, c->gpu, "temperature");
	double idle = number_of(c->s, c->gpu, "power"), limit = number_of(c->s, c->gpu, "power.limit");
	double cold = number_of(c->s, c->gpu, "temperature.idle"), hot = number_of(c->s, c->gpu, "temperature.load");
	return limit > idle ? cold + (hot - cold) * (rate_of(c, R_POWER) - idle) / (limit - idle) : cold;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius) {
	GPU_CALL(celsius);
	if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
	*celsius = (unsigned)(gpu_temperature(&c) + 0.5);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature) {
	GPU_CALL(temperature);
	NEEDS_VERSION(temperature->version, nvmlTemperature_v1);
	if (temperature->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
	temperature->temperature = (int)(gpu_temperature(&c) + 0.5);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold, unsigned int *celsius) {
	GPU_CALL(celsius);
	static const char *const keys[] = {"temperature.shutdown", "temperature.slowdown", "temperature.memory_max", "temperature.max"};
	if (threshold >= NVML_TEMPERATURE_THRESHOLD_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	if (threshold > NVML_TEMPERATURE_THRESHOLD_GPU_MAX) return NVML_ERROR_NOT_SUPPORTED;
	*celsius = (unsigned)number_of(c.s, c.gpu, keys[threshold]);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *margin) {
	GPU_CALL(margin);
	NEEDS_VERSION(margin->version, nvmlMarginTemperature_v1);
	if (!flag_of(c.s, c.gpu, "temperature.margins")) return NVML_ERROR_NOT_SUPPORTED;
	margin->marginTemperature = (int)(number_of(c.s, c.gpu, "temperature.max") - gpu_temperature(&c) + 0.5);
	return NVML_SUCCESS;
}
