//go:build cgo

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// fabricInfo is what all versions of the call have in common, and what the
// later ones added.
type fabricInfo struct {
	cluster         [16]uint8
	status, clique  uint32
	state           uint8
	mask            uint32
	summary         uint8
	hasMask, hasSum bool
}

// readFabric reads whether the NVLink fabric has taken the card in. Cards
// before Hopper are not asked by the fabric manager.
func (l *Library) readFabric(d nvml.Device, id gpu.Identity, h *gpu.Health, a *answers) {
	if linksOf(id) == 0 || before(id, "hopper") {
		return
	}
	if info, ok := l.fabricInfo(d, a); ok {
		h.Fabric = fabricState(info, a)
	}
}

// fabricInfo asks in the newest version that the driver knows: 3 from 570 on,
// 2 from 545 on, before that the call without version.
func (l *Library) fabricInfo(d nvml.Device, a *answers) (fabricInfo, bool) {
	if !l.has("nvmlDeviceGetGpuFabricInfoV") {
		if !l.has("nvmlDeviceGetGpuFabricInfo") {
			return fabricInfo{}, false
		}
		v, ret := d.GetGpuFabricInfo()
		return fabricInfo{cluster: v.ClusterUuid, status: v.Status, clique: v.CliqueId, state: v.State}, a.ok("nvmlDeviceGetGpuFabricInfo", ret)
	}
	ask := d.GetGpuFabricInfoV()
	v, ret := ask.V3()
	if ret != nvml.ERROR_ARGUMENT_VERSION_MISMATCH {
		return fabricInfo{v.ClusterUuid, v.Status, v.CliqueId, v.State, v.HealthMask, v.HealthSummary, true, true}, a.ok("nvmlDeviceGetGpuFabricInfoV", ret)
	}
	old, ret := ask.V2()
	return fabricInfo{old.ClusterUuid, old.Status, old.CliqueId, old.State, old.HealthMask, 0, true, false}, a.ok("nvmlDeviceGetGpuFabricInfoV", ret)
}

// fabricState names what the numbers mean. A card that is on no fabric has none.
func fabricState(f fabricInfo, a *answers) gpu.Opt[gpu.FabricState] {
	names := []string{nvml.GPU_FABRIC_STATE_NOT_SUPPORTED: "", nvml.GPU_FABRIC_STATE_NOT_STARTED: "not-started",
		nvml.GPU_FABRIC_STATE_IN_PROGRESS: "in-progress", nvml.GPU_FABRIC_STATE_COMPLETED: "completed"}
	if int(f.state) >= len(names) || f.status > uint32(nvml.ERROR_UNKNOWN) {
		a.garbage("nvmlDeviceGetGpuFabricInfo")
		return gpu.Opt[gpu.FabricState]{}
	}
	if f.state == nvml.GPU_FABRIC_STATE_NOT_SUPPORTED {
		return gpu.Opt[gpu.FabricState]{}
	}
	s := gpu.FabricState{State: names[f.state], Status: int(f.status), Clique: int(f.clique), Cluster: clusterOf(f.cluster)}
	if f.hasMask {
		s.Health = fabricHealth(f.mask)
	}
	if summary, ok := fabricSummaries[f.summary]; ok && f.hasSum {
		s.Summary = gpu.Some(summary)
	}
	return gpu.Some(s)
}

var fabricSummaries = map[uint8]string{
	nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY:          "healthy",
	nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY:        "unhealthy",
	nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY: "limited",
}

// fabricHealth names what a health mask complains of. Two bits each say 1 for
// yes; the four of the configuration say 1 for right and more for what is wrong.
func fabricHealth(mask uint32) []string {
	var out []string
	for _, part := range []struct {
		shift uint32
		name  string
	}{
		{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW, "degraded-bandwidth"},
		{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY, "route-recovery"},
		{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY, "route-unhealthy"},
		{nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY, "access-timeout"},
	} {
		if mask>>part.shift&3 == 1 {
			out = append(out, part.name)
		}
	}
	if mask>>nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION&0xf > 1 {
		out = append(out, "wrong-configuration")
	}
	return out
}

// clusterOf is the UUID of the NVLink domain; all zero on a node by itself.
func clusterOf(u [16]uint8) string {
	if u == [16]uint8{} {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
