package check

import (
	"testing"

	"gpuhooks/internal/gpu"
)

func nodeFault(kind gpu.FaultKind, code int) func(*Input) {
	return func(in *Input) {
		in.Node.GPUs, in.Node.Driver = nil, gpu.Driver{}
		in.Node.Faults = []gpu.Fault{{Call: "nvmlInit_v2", Code: code, Kind: kind}}
	}
}

func TestDriverLoaded(t *testing.T) {
	runTests(t, driverLoaded, []test{
		{"no module", func(in *Input) { in.Node.Presence.ModuleLoaded = gpu.Some(false) }, []string{"fail node: the nvidia kernel module is not loaded"}},
		{"no module, no device, nothing expected", func(in *Input) {
			in.Node.Presence.ModuleLoaded, in.Node.Presence.PCI, in.Expected = gpu.Some(false), nil, Expected{}
		}, []string{"skip node: no NVIDIA device on this node"}},
		{"no module, no device, GPUs expected", func(in *Input) {
			in.Node.Presence.ModuleLoaded, in.Node.Presence.PCI = gpu.Some(false), nil
		}, []string{"fail node: the nvidia kernel module is not loaded"}},
		{"NVML finds no driver", nodeFault(gpu.FaultNoDriver, 9), []string{"fail node: NVML finds no driver: nvmlInit_v2: no-driver (code 9)"}},
		{"mismatch is another check", nodeFault(gpu.FaultMismatch, 18), nil},
		{"no library", nodeFault(gpu.FaultNoLibrary, 12), []string{"error node: the NVML library cannot be loaded: nvmlInit_v2: no-library (code 12)"}},
		{"out of memory", nodeFault(gpu.FaultMemory, 20), []string{"error node: NVML cannot be used: nvmlInit_v2: out-of-memory (code 20)"}},
	})
}

func TestDriverMismatch(t *testing.T) {
	runTests(t, driverMismatch, []test{
		{"mismatch", nodeFault(gpu.FaultMismatch, 18), []string{
			"fail node: the NVML library and the kernel module have different versions: the module is 580.95.05",
		}},
		{"mismatch, with the library's version", func(in *Input) {
			nodeFault(gpu.FaultMismatch, 18)(in)
			in.Node.Driver.NVML = gpu.Some("13.585.10")
		}, []string{"fail node: the NVML library and the kernel module have different versions: the module is 580.95.05, the library 13.585.10"}},
		{"another fault", nodeFault(gpu.FaultNoDriver, 9), []string{"skip node: NVML did not answer"}},
	})
}

func TestDeviceNodes(t *testing.T) {
	runTests(t, deviceNodes, []test{
		{"no control device", func(in *Input) { in.Node.Presence.Control = gpu.Some(false) }, []string{"fail node: /dev/nvidiactl is missing"}},
		{"/dev not readable", func(in *Input) {
			in.Node.Presence.Control = gpu.Opt[bool]{}
			in.Node.Presence.Faults = []gpu.Fault{{Call: "/dev", Code: 13, Kind: gpu.FaultPermission}}
		}, []string{"error node: /dev could not be read: /dev: permission (code 13)"}},
		{"no driver is said elsewhere", func(in *Input) {
			in.Node.Presence.ModuleLoaded, in.Node.Presence.Control = gpu.Some(false), gpu.Some(false)
		}, []string{"skip node: the driver is not loaded"}},
		{"a file of gres.conf is missing", func(in *Input) { in.Node.Presence.DeviceMinors = []int{7} }, []string{"fail GPU-1: /dev/nvidia6 is missing"}},
		{"gres.conf names more than there is", func(in *Input) { in.Expected.Minors = []int{5, 6, 7} }, []string{"fail node: /dev/nvidia5 is missing"}},
		{"without gres.conf every card counts", func(in *Input) {
			in.Expected, in.Node.Presence.DeviceMinors = Expected{}, nil
		}, []string{"fail GPU-1: /dev/nvidia6 is missing", "fail GPU-0: /dev/nvidia7 is missing"}},
		{"of another job's card", func(in *Input) {
			in.Only, in.Node.Presence.DeviceMinors = []string{"GPU-0"}, []int{7}
		}, nil},
		{"nothing is known", func(in *Input) { in.Expected, in.Node.Presence.Proc = Expected{}, nil }, []string{"skip node: no GPU is known from /proc or gres.conf"}},
	})
}

func TestGPUCount(t *testing.T) {
	runTests(t, gpuCount, []test{
		{"too few", func(in *Input) { drop(in, 1) }, []string{"fail node: the driver has 1 GPUs, Slurm's configuration 2"}},
		{"too many", func(in *Input) { in.Expected.GPUs = gpu.Some(1) }, []string{"warn node: the driver has 2 GPUs, Slurm's configuration only 1"}},
		{"nothing expected", func(in *Input) { in.Expected = Expected{} }, []string{"skip node: Slurm's configuration does not say how many GPUs this node has"}},
		{"not answered", func(in *Input) { in.Node.Driver.Count = gpu.Opt[int]{} }, []string{"error node: the driver did not say how many GPUs it has"}},
		{"no driver is said elsewhere", nodeFault(gpu.FaultNoDriver, 9), []string{"skip node: the driver is not loaded"}},
	})
	if !gpuCount.Count {
		t.Error("it counts devices and does not say so")
	}
}
