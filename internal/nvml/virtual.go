//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// virtualizations are the names of nvmlGpuVirtualizationMode_t.
var virtualizations = map[nvml.GpuVirtualizationMode]string{
	nvml.GPU_VIRTUALIZATION_MODE_NONE:        "none",
	nvml.GPU_VIRTUALIZATION_MODE_PASSTHROUGH: "passthrough",
	nvml.GPU_VIRTUALIZATION_MODE_VGPU:        "vgpu",
	nvml.GPU_VIRTUALIZATION_MODE_HOST_VGPU:   "host-vgpu",
	nvml.GPU_VIRTUALIZATION_MODE_HOST_VSGA:   "host-vsga",
}

// guest says that the card is a virtual GPU: it has neither a PCIe link nor
// clocks of its own.
func guest(id gpu.Identity) bool { return id.Virtualization.Or("") == "vgpu" }

// readLicense reads whether a virtual GPU has its licence; without one it is
// slowed down after a while.
func readLicense(d nvml.Device, id gpu.Identity, h *gpu.Health, a *answers) {
	if !guest(id) {
		return
	}
	f, ret := d.GetGridLicensableFeatures()
	if !a.ok("nvmlDeviceGetGridLicensableFeatures", ret) || f.IsGridLicenseSupported == 0 {
		return
	}
	if f.LicensableFeaturesCount > uint32(len(f.GridLicensableFeatures)) {
		a.garbage("nvmlDeviceGetGridLicensableFeatures")
		return
	}
	licensed := false
	for _, one := range f.GridLicensableFeatures[:f.LicensableFeaturesCount] {
		licensed = licensed || one.FeatureState != 0
	}
	h.License = gpu.Some(licensed)
}

// ConfCompute reads the node's confidential computing: one call where it is
// off, two where it is on. It is unset where the driver does not have it.
func (l *Library) ConfCompute() (gpu.Opt[gpu.ConfCompute], []gpu.Fault) {
	var a answers
	if !l.has("nvmlSystemGetConfComputeState") || !l.has("nvmlSystemGetConfComputeGpusReadyState") {
		return gpu.Opt[gpu.ConfCompute]{}, nil
	}
	s, ret := l.api.SystemGetConfComputeState()
	if !a.ok("nvmlSystemGetConfComputeState", ret) {
		return gpu.Opt[gpu.ConfCompute]{}, a.faults
	}
	enabled := yes(&a, "nvmlSystemGetConfComputeState", s.CcFeature)
	devtools := yes(&a, "nvmlSystemGetConfComputeState", s.DevToolsMode)
	if len(a.faults) > 0 {
		return gpu.Opt[gpu.ConfCompute]{}, a.faults
	}
	c := gpu.ConfCompute{Enabled: enabled.Or(false), DevTools: devtools.Or(false)}
	if c.Enabled {
		ready, ret := l.api.SystemGetConfComputeGpusReadyState()
		if !a.ok("nvmlSystemGetConfComputeGpusReadyState", ret) {
			return gpu.Opt[gpu.ConfCompute]{}, a.faults
		}
		c.Ready = ready == nvml.CC_ACCEPTING_CLIENT_REQUESTS_TRUE
	}
	return gpu.Some(c), a.faults
}
