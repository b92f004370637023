package check

import (
	"testing"

	"gpuhooks/internal/gpu"
)

func TestResetRequired(t *testing.T) {
	runTests(t, resetRequired, []test{
		{"NVML says so", on(1, func(g *gpu.GPU) {
			g.Faults = []gpu.Fault{{Call: "nvmlDeviceGetMemoryInfo", Code: 16, Kind: gpu.FaultResetRequired}}
		}), []string{"fail GPU-1: NVML answers RESET_REQUIRED"}},
		{"another fault", on(1, func(g *gpu.GPU) { g.Faults = []gpu.Fault{{Kind: gpu.FaultTimeout}} }), nil},
	})
}

func TestRecoveryAction(t *testing.T) {
	set := func(n int) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.RecoveryAction = gpu.Some(n) })
	}
	runTests(t, recoveryAction, []test{
		{"reset", set(1), []string{"fail RESET GPU-1: the driver asks to reset the GPU"}},
		{"reboot", set(2), []string{"fail REBOOT GPU-1: the driver asks to reboot the node"}},
		{"drain P2P", set(3), []string{"fail DRAINP2P GPU-1: the driver asks to end the jobs that copy peer-to-peer with the GPU, then reset it"}},
		{"drain and reset", set(4), []string{"fail DRAINRESET GPU-1: the driver asks to drain the node, then reset the GPU"}},
		{"IMEX", set(5), []string{"fail IMEX GPU-1: the driver asks to recover the IMEX domain"}},
		{"one that is not known yet", set(9), []string{"fail RECOVERY9 GPU-1: the driver asks to take recovery action 9"}},
		{"older driver", on(1, func(g *gpu.GPU) { g.Health.RecoveryAction = gpu.Opt[int]{} }), []string{"skip GPU-1: the driver does not report a recovery action"}},
		{"not read in time", on(1, func(g *gpu.GPU) { g.Health.RecoveryAction, g.Complete = gpu.Opt[int]{}, false }), []string{"error GPU-1: not read before the deadline"}},
		{"read in time, the rest was not", on(1, func(g *gpu.GPU) { g.Complete = false }), nil},
	})
}

func TestGPUSilent(t *testing.T) {
	fault := func(call string) gpu.Fault { return gpu.Fault{Call: call, Code: 999, Kind: gpu.FaultOther} }
	dead := on(1, func(g *gpu.GPU) {
		g.Readings, g.Counters = nil, nil
		for _, call := range []string{"nvmlDeviceGetFieldValues", "nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetUtilizationRates"} {
			g.Faults = append(g.Faults, fault(call))
		}
	})
	runTests(t, gpuSilent, []test{
		{"nothing can be read", dead, []string{
			"fail GPU-1: the driver cannot talk to it: nvmlDeviceGetFieldValues: error (code 999), and 3 more calls fail",
		}},
		{"it cannot be opened", on(1, func(g *gpu.GPU) { g.Faults = []gpu.Fault{fault("nvmlDeviceGetHandleByIndex")} }), []string{
			"fail GPU-1: the driver cannot open it: nvmlDeviceGetHandleByIndex: error (code 999)",
		}},
		{"one sensor", on(1, func(g *gpu.GPU) { g.Faults = []gpu.Fault{fault("nvmlDeviceGetTemperature")} }), nil},
		{"several calls, and it speaks", all(dead, on(1, func(g *gpu.GPU) { g.Readings = gpu.Readings{gpu.Temperature: 40} })), nil},
		{"a job's cgroup does not let us", on(1, func(g *gpu.GPU) {
			g.Faults = []gpu.Fault{{Call: "nvmlDeviceGetHandleByIndex", Code: 4, Kind: gpu.FaultPermission}}
		}), nil},
		{"it broke off", all(dead, on(1, func(g *gpu.GPU) { g.Complete = false })), []string{"error GPU-1: not read before the deadline"}},
	})
}

func TestPCIeLink(t *testing.T) {
	narrow := on(1, func(g *gpu.GPU) { g.Health.PCIeWidth = gpu.Some(8) })
	load := func(use float64) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Readings[gpu.Utilization] = use })
	}
	runTests(t, pcieLink, []test{
		{"narrower than its sibling", narrow, []string{"fail GPU-1: the PCIe link has 8 of 16 lanes; GPU 0 of the same kind has 16"}},
		{"all narrow: the board's design", all(narrow, on(0, func(g *gpu.GPU) { g.Health.PCIeWidth = gpu.Some(8) })), []string{
			"pass GPU-0: the PCIe link has 8 of 16 lanes, and no card of its kind here has more: the board's design, unless the baseline says otherwise",
			"pass GPU-1: the PCIe link has 8 of 16 lanes, and no card of its kind here has more: the board's design, unless the baseline says otherwise",
		}},
		{"narrow beside another kind", all(narrow, on(1, func(g *gpu.GPU) { g.Name = "NVIDIA A10" })), []string{
			"pass GPU-1: the PCIe link has 8 of 16 lanes, and no card of its kind here has more: the board's design, unless the baseline says otherwise",
		}},
		{"the sibling is another job's", all(narrow, func(in *Input) { in.Only = []string{"GPU-1"} }), []string{
			"fail GPU-1: the PCIe link has 8 of 16 lanes; GPU 0 of the same kind has 16",
		}},
		{"idle cards lower the generation", load(0.2), nil},
		{"low generation under load", load(0.9), []string{"warn GPU-1: the PCIe link runs at generation 1 of 5 under load"}},
		{"full generation under load", all(load(0.9), on(1, func(g *gpu.GPU) { g.Health.PCIeGen = gpu.Some(5) })), nil},
		{"a virtual link with one lane", on(1, func(g *gpu.GPU) {
			g.Health.PCIeWidth, g.PCIeMaxWidth, g.PCIeMaxGen = gpu.Some(1), gpu.Some(1), gpu.Some(1)
		}), nil},
		{"not reported", on(1, func(g *gpu.GPU) { g.PCIeMaxWidth = gpu.Opt[int]{} }), []string{"skip GPU-1: the driver does not report the width of the PCIe link"}},
		{"reported as 0", on(1, func(g *gpu.GPU) { g.Health.PCIeWidth = gpu.Some(0) }), []string{"skip GPU-1: the driver does not report the width of the PCIe link"}},
	})
}

func TestPersistence(t *testing.T) {
	runTests(t, persistence, []test{
		{"off", on(1, func(g *gpu.GPU) { g.Health.Persistence = gpu.Some(false) }), []string{"fail GPU-1: persistence mode is off"}},
		{"off, and a process keeps the driver's state", on(1, func(g *gpu.GPU) {
			g.Health.Persistence = gpu.Some(false)
			g.Processes = []gpu.Process{{PID: 7}}
		}), []string{"pass GPU-1: persistence mode is off; a process keeps the driver's state meanwhile"}},
		{"off, as on a workstation", on(1, func(g *gpu.GPU) {
			g.Health.Persistence = gpu.Some(false)
			g.Name = "NVIDIA RTX 4000 Ada Generation"
		}), []string{"pass GPU-1: persistence mode is off, as is usual for a workstation's card"}},
		{"off on a server's card of that name", on(1, func(g *gpu.GPU) {
			g.Health.Persistence = gpu.Some(false)
			g.Name = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
		}), []string{"fail GPU-1: persistence mode is off"}},
		{"not reported", on(1, func(g *gpu.GPU) { g.Health.Persistence = gpu.Opt[bool]{} }), []string{"skip GPU-1: the driver does not report persistence mode"}},
	})
}

func TestMIG(t *testing.T) {
	mode := func(current, pending bool) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.MIG = gpu.Some(gpu.Switch{Current: current, Pending: pending}) })
	}
	cut := on(1, func(g *gpu.GPU) { g.Instances = []gpu.Instance{{GI: 1}} })
	none := on(1, func(g *gpu.GPU) { g.Health.MIG = gpu.Opt[gpu.Switch]{} })
	runTests(t, migPending, []test{
		{"goes on", mode(false, true), []string{"fail GPU-1: MIG mode goes on at the next reset"}},
		{"goes off", mode(true, false), []string{"fail GPU-1: MIG mode goes off at the next reset"}},
		{"on", mode(true, true), nil},
		{"no MIG", none, []string{"skip GPU-1: the driver does not report MIG mode"}},
	})
	runTests(t, migEmpty, []test{
		{"on, without instances", mode(true, true), []string{"fail GPU-1: MIG mode is on and there is no instance"}},
		{"on, with instances", all(mode(true, true), cut), nil},
		{"on, instances not read in time", all(mode(true, true), on(1, func(g *gpu.GPU) { g.Complete = false })), []string{"error GPU-1: not read before the deadline"}},
		{"no MIG", none, []string{"skip GPU-1: the driver does not report MIG mode"}},
	})
}

func TestReadings(t *testing.T) {
	faults := func(f ...gpu.Fault) func(*Input) { return on(1, func(g *gpu.GPU) { g.Faults = f }) }
	power := gpu.Fault{Call: "nvmlDeviceGetPowerUsage", Code: 999, Kind: gpu.FaultOther}
	runTests(t, readings, []test{
		{"a call fails", faults(power), []string{"error GPU-1: nvmlDeviceGetPowerUsage: error (code 999)"}},
		{"several calls fail", faults(power, power, power), []string{"error GPU-1: nvmlDeviceGetPowerUsage: error (code 999) (and 2 more)"}},
		{"only the fan's sensor fails", faults(gpu.Fault{Call: "nvmlDeviceGetFanSpeed", Code: 999, Kind: gpu.FaultOther}), []string{
			"warn GPU-1: nvmlDeviceGetFanSpeed: error (code 999)",
		}},
		{"lost is another check", faults(power, gpu.Fault{Kind: gpu.FaultLost}), nil},
		{"reset required is another check", faults(gpu.Fault{Kind: gpu.FaultResetRequired}), nil},
	})
}

func TestLeftOverProcesses(t *testing.T) {
	proc := func(pid int, name, job string) gpu.Process {
		return gpu.Process{PID: pid, Name: name, Job: job, Start: gpu.Some(uint64(1000 + pid)), Type: "compute"}
	}
	runs := func(p ...gpu.Process) func(*Input) { return on(1, func(g *gpu.GPU) { g.Processes = p }) }
	seen := func(p ...gpu.Process) func(*Input) { return func(in *Input) { in.Memory.Seen = p } }
	stray := proc(40, "python", "")
	ended := proc(41, "vasp", "16")
	again := stray
	again.Start = gpu.Some(uint64(99999))
	left := []string{"fail GPU-1: processes of no live job: 40 (python)"}
	runTests(t, leftOverProcesses, []test{
		{"seen for the first time", runs(stray), nil},
		{"seen again", all(runs(stray), seen(stray)), left},
		{"of a job that has ended", all(runs(ended, stray), seen(ended, stray)), []string{"fail GPU-1: processes of no live job: 41 (vasp), 40 (python)"}},
		{"the pid is another process's by now", all(runs(again), seen(stray)), nil},
		{"of a live job", all(runs(proc(42, "vasp", "17")), seen(proc(42, "vasp", "17"))), nil},
		{"on the allow list", all(runs(proc(43, "nvidia-persiste", "")), seen(proc(43, "nvidia-persiste", ""))), nil},
		{"its name only begins like an allowed one", all(runs(proc(45, "nvidia-persist", "")), seen(proc(45, "nvidia-persist", ""))),
			[]string{"fail GPU-1: processes of no live job: 45 (nvidia-persist)"}},
		{"gone by now", all(runs(gpu.Process{PID: 44}), seen(gpu.Process{PID: 44})), nil},
		{"in a MIG instance", all(on(1, func(g *gpu.GPU) {
			g.Instances = []gpu.Instance{{Processes: []gpu.Process{stray}}}
			g.Processes = []gpu.Process{stray}
		}), seen(stray)), left},
		{"on a shared GPU", all(runs(stray), seen(stray), func(in *Input) { in.Processes.SharedGPUs = []string{"GPU-1"} }),
			[]string{"skip GPU-1: several jobs may run on this GPU"}},
		{"on another job's GPU", all(runs(stray), seen(stray), func(in *Input) { in.Only = []string{"GPU-0"} }), nil},
		{"jobs have no cgroups", all(runs(stray), seen(stray), func(in *Input) { in.Processes.HasCgroups = false }),
			[]string{"skip node: jobs have no cgroups here, so a process cannot be attributed"}},
	})
	if leftOverProcesses.Default != "warn" {
		t.Error("the default is to warn")
	}
}
