// Virtual GPUs, as the virtual machine sees them.
#include "nvml_sim.h"

nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t device, nvmlGridLicensableFeatures_t *features) {
	GPU_CALL(features);
	memset(features, 0, sizeof *features);
	if (lacks(c.s, c.gpu, "license")) return NVML_SUCCESS; // isGridLicenseSupported is 0
	features->isGridLicenseSupported = 1;
	features->licensableFeaturesCount = 1;
	nvmlGridLicensableFeature_t *f = &features->gridLicensableFeatures[0];
	f->featureCode = NVML_GRID_LICENSE_FEATURE_CODE_COMPUTE;
	f->featureState = flag_of(c.s, c.gpu, "license");
	f->featureEnabled = 1;
	f->licenseExpiry.status = f->featureState ? NVML_GRID_LICENSE_EXPIRY_PERMANENT : NVML_GRID_LICENSE_EXPIRY_NOT_AVAILABLE;
	strcpy(f->productName, "NVIDIA Virtual Compute Server");
	return NVML_SUCCESS;
}
