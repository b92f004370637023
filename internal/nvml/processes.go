//go:build cgo

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// process is a process as NVML lists it; gi and ci are -1 on a whole GPU.
type process struct {
	gi, ci int
	gpu.Process
}

// maxProcesses bounds what is kept of a list that may be garbage.
const maxProcesses = 4096

// readProcesses lists the processes of a GPU, those of its MIG devices
// included: one call each for compute and graphics, and one more each time the
// list does not fit.
func readProcesses(d nvml.Device, a *answers) []process {
	var list []process
	if p, ret := d.GetComputeRunningProcesses(); a.ok("nvmlDeviceGetComputeRunningProcesses", ret) {
		list = appendProcesses(list, p, "compute")
	}
	if p, ret := d.GetGraphicsRunningProcesses(); a.ok("nvmlDeviceGetGraphicsRunningProcesses", ret) {
		list = appendProcesses(list, p, "graphics")
	}
	return list
}

// appendProcesses adds those that are not in the list yet: a process may use
// the GPU for both.
func appendProcesses(list []process, from []nvml.ProcessInfo, kind string) []process {
next:
	for _, p := range from {
		if p.Pid == 0 || p.Pid > math.MaxInt32 || len(list) == maxProcesses {
			continue
		}
		q := process{gi: instanceID(p.GpuInstanceId), ci: instanceID(p.ComputeInstanceId)}
		q.PID, q.Type = int(p.Pid), kind
		if p.UsedGpuMemory < 1<<50 { // all ones: not available
			q.Memory = gpu.Some(p.UsedGpuMemory)
		}
		for _, old := range list {
			if old.PID == q.PID && old.gi == q.gi && old.ci == q.ci {
				continue next
			}
		}
		list = append(list, q)
	}
	return list
}

func instanceID(id uint32) int {
	if id == math.MaxUint32 {
		return -1
	}
	return int(id)
}

// of returns the processes of one MIG device.
func of(list []process, gi, ci int) []gpu.Process {
	var out []gpu.Process
	for _, p := range list {
		if p.gi == gi && p.ci == ci {
			out = append(out, p.Process)
		}
	}
	return out
}

// all returns every process of the GPU.
func all(list []process) []gpu.Process {
	var out []gpu.Process
	for _, p := range list {
		out = append(out, p.Process)
	}
	return out
}
