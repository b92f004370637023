package check

import (
	"testing"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/gpu"
)

func TestComputeMode(t *testing.T) {
	mode := func(m string) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.ComputeMode = gpu.Some(m) })
	}
	runTests(t, computeMode, []test{
		{"prohibited", mode("prohibited"), []string{"fail GPU-1: the compute mode is prohibited: no program can use the GPU"}},
		{"exclusive, no baseline", mode("exclusive-process"), nil},
		{"not as the baseline says", all(mode("exclusive-process"), expect(baseline.Card{ComputeMode: "default"})),
			[]string{"warn GPU-1: not as the baseline expects: compute mode: exclusive-process instead of default"}},
		{"not told", on(1, func(g *gpu.GPU) { g.Health.ComputeMode = gpu.Opt[string]{} }), []string{"skip GPU-1: the driver does not report its compute mode"}},
	})
}

func TestMIGLayout(t *testing.T) {
	divided := func(n int) func(*Input) {
		return on(1, func(g *gpu.GPU) {
			g.Health.MIG = gpu.Some(gpu.Switch{Current: true, Pending: true})
			for i := range n {
				g.Instances = append(g.Instances, gpu.Instance{GI: 7 + i, Profile: "1g.10gb"})
			}
		})
	}
	gres := func(n int) func(*Input) { // card 1 is /dev/nvidia6
		return func(in *Input) { in.Expected.Instances = map[int]int{6: n} }
	}
	runTests(t, migLayout, []test{
		{"as gres.conf says", all(divided(7), gres(7)), nil},
		{"one is missing", all(divided(6), gres(7)), []string{"fail GPU-1: 6 MIG instances, and gres.conf has 7 MIG devices of it"}},
		{"all are missing", all(divided(0), gres(7)), []string{"fail GPU-1: 0 MIG instances, and gres.conf has 7 MIG devices of it"}},
		{"one more", all(divided(3), gres(2)), []string{"warn GPU-1: 3 MIG instances, and gres.conf has only 2 MIG devices of it"}},
		{"MIG mode is off", gres(7), []string{"fail GPU-1: gres.conf has 7 MIG devices of it, and MIG mode is off"}},
		{"gres.conf hands out the card", divided(2), []string{"warn GPU-1: gres.conf hands out the whole GPU, which is divided into 2 MIG instances"}},
		{"detected: gres.conf names no file", all(divided(2), func(in *Input) { in.Expected.Minors = nil }), nil},
		{"instances not read in time", all(divided(3), gres(7), on(1, func(g *gpu.GPU) { g.Complete = false })), []string{"error GPU-1: not read before the deadline"}},
		{"not the baseline's layout", all(divided(2), gres(2), expect(baseline.Card{MIG: "on", Instances: map[string]int{"1g.10gb": 7}}), func(in *Input) { in.Only = []string{"GPU-1"} }),
			[]string{"warn GPU-1: not as the baseline expects: MIG instances: 1g.10gb×2 instead of 1g.10gb×7"}},
		{"no MIG", on(1, func(g *gpu.GPU) { g.Health.MIG = gpu.Opt[gpu.Switch]{} }), []string{"skip GPU-1: the baseline expects nothing of it"}},
	})
}

func TestMemoryInUse(t *testing.T) {
	holds := func(mib float64, p ...gpu.Process) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Readings[gpu.MemoryUsed], g.Processes = mib*(1<<20), p })
	}
	again := func(in *Input) {
		b := in.Memory.Last["GPU-1"]
		b.Suspect = []string{"memory-in-use"}
		in.Memory.Last["GPU-1"] = b
	}
	leaked := []string{"fail GPU-1: 4000 MiB are in use, and no process is there"}
	const unknown = "skip GPU-1: the driver does not report memory in use and processes"
	runTests(t, memoryInUse, []test{
		{"once: a process has just ended", holds(4000), nil},
		{"twice", all(holds(4000), again), leaked},
		{"what the driver holds", all(holds(500), again), nil},
		{"a process has it", all(holds(4000, gpu.Process{PID: 7}), again), nil},
		{"in a MIG instance", all(on(1, func(g *gpu.GPU) {
			g.Readings[gpu.MemoryUsed] = 9000 << 20
			g.Instances = []gpu.Instance{{GI: 1, Readings: gpu.Readings{gpu.MemoryUsed: 5000 << 20}, Processes: []gpu.Process{{PID: 3}}}, {GI: 2, CI: 1, Readings: gpu.Readings{gpu.MemoryUsed: 4000 << 20}}}
		}), again), []string{"fail GPU-1: 4000 MiB are in use in MIG instance 2/1, and no process is there"}},
		{"a shared GPU", all(holds(4000), again, func(in *Input) { in.Processes.SharedGPUs = []string{"GPU-1"} }), []string{"skip GPU-1: several jobs may run on this GPU"}},
		{"unified memory (case E14)", on(1, func(g *gpu.GPU) { delete(g.Readings, gpu.MemoryUsed) }), []string{unknown}},
		{"the processes could not be read", all(holds(4000), again, on(1, func(g *gpu.GPU) {
			g.Faults = []gpu.Fault{{Call: "nvmlDeviceGetComputeRunningProcesses_v3", Kind: gpu.FaultOther}}
		})), []string{unknown}},
		{"a hypervisor's guests", all(holds(4000), again, on(1, func(g *gpu.GPU) { g.Virtualization = gpu.Some("host-vgpu") })), []string{unknown}},
	})
	old := healthy(1)
	old.Node.Driver.Version = gpu.Some("470.82.01")
	if f := memoryInUse.Run(old)[0]; f.Outcome != Skip {
		t.Errorf("driver 470 counts what it reserves as used: %s", show(f))
	}
}

func TestVersions(t *testing.T) {
	driver := func(v string) func(*Input) {
		return func(in *Input) { in.Baseline.Node.Driver = v }
	}
	card := expect(baseline.Card{VBIOS: []string{"96.00.89", "96.00.99"}, InfoROM: []string{"G520"}, GSP: []string{"580.95.05"}})
	runRows(t, versions, []test{
		{"as the baseline says", all(card, driver("580.95.05")), nil},
		{"another driver", all(card, driver("570.86")), []string{"fail node: not as the baseline expects: driver: 580.95.05 instead of 570.86"}},
		{"another VBIOS and firmware", all(card, on(1, func(g *gpu.GPU) { g.VBIOS, g.GSP = gpu.Some("96.00.74"), gpu.Some("570") })),
			[]string{"fail GPU-1: not as the baseline expects: VBIOS: 96.00.74 instead of 96.00.89 or 96.00.99, GSP firmware: 570 instead of 580.95.05"}},
		{"the driver does not say", all(card, on(1, func(g *gpu.GPU) { g.InfoROM = gpu.Opt[string]{} })),
			[]string{"error GPU-1: the baseline expects what the driver does not report: InfoROM"}},
		{"no baseline", func(*Input) {}, []string{"skip GPU-0: the baseline expects nothing of it", "skip GPU-1: the baseline expects nothing of it"}},
	})
}

func TestConfCompute(t *testing.T) {
	set := func(c gpu.ConfCompute) func(*Input) {
		return func(in *Input) { in.Node.Driver.ConfCompute = gpu.Some(c) }
	}
	baseline := func(s string) func(*Input) { return func(in *Input) { in.Baseline.Node.ConfCompute = s } }
	runRows(t, confCompute, []test{
		{"ready", set(gpu.ConfCompute{Enabled: true, Ready: true}), nil},
		{"not ready", set(gpu.ConfCompute{Enabled: true}), []string{"fail node: confidential computing is on and the GPUs do not accept work yet"}},
		{"off", set(gpu.ConfCompute{}), nil},
		{"DevTools", set(gpu.ConfCompute{Enabled: true, Ready: true, DevTools: true}), []string{"warn node: confidential computing is in DevTools mode: nothing is confidential"}},
		{"off, and the baseline says on", all(set(gpu.ConfCompute{}), baseline("on")), []string{"warn node: not as the baseline expects: confidential computing: off instead of on"}},
		{"not possible", func(*Input) {}, []string{"skip node: the driver does not report confidential computing"}},
	})
}

func TestVGPULicence(t *testing.T) {
	licence := func(ok bool) func(*Input) {
		return func(in *Input) {
			for i := range in.Node.GPUs {
				in.Node.GPUs[i].Health.License = gpu.Some(i == 0 || ok)
			}
		}
	}
	runRows(t, vgpuLicence, []test{
		{"licensed", licence(true), nil},
		{"not licensed", licence(false), []string{"warn GPU-1: the vGPU has no licence"}},
		{"not licensed, and must be", all(licence(false), expect(baseline.Card{Licensed: true})), []string{"fail GPU-1: the vGPU has no licence"}},
		{"no vGPU", func(*Input) {}, []string{"skip GPU-0: the driver does not report a vGPU licence", "skip GPU-1: the driver does not report a vGPU licence"}},
	})
}

func TestVirtualization(t *testing.T) {
	runRows(t, virtualization, []test{
		{"as the baseline says", expect(baseline.Card{Virtualization: "none"}), nil},
		{"a guest", all(expect(baseline.Card{Virtualization: "none"}), on(1, func(g *gpu.GPU) { g.Virtualization = gpu.Some("vgpu") })),
			[]string{"fail GPU-1: not as the baseline expects: virtualization: vgpu instead of none"}},
	})
}

func TestBaselineFile(t *testing.T) {
	runRows(t, baselineFile, []test{
		{"none", func(*Input) {}, []string{"skip node: there is none"}},
		{"broken", func(in *Input) { in.Unusable = "/b.toml:3: unknown key" }, []string{"error node: /b.toml:3: unknown key"}},
		{"as many cards", expect(baseline.Card{Count: 2}), nil},
		{"a card too few", expect(baseline.Card{Count: 3}), []string{"fail node: not as the baseline expects: number of NVIDIA H100 80GB HBM3: 2 instead of 3"}},
		{"answered in part", all(expect(baseline.Card{Count: 3}), func(in *Input) { in.Answer = gpu.AnswerPartial }), []string{"error node: the driver did not answer for all GPUs"}},
	})
}

func TestSettingsOfTheBaseline(t *testing.T) {
	off := on(1, func(g *gpu.GPU) { g.Health.Persistence = gpu.Some(false) })
	runTests(t, persistence, []test{{"off on purpose", all(off, expect(baseline.Card{Persistence: "off"})), nil}})
	narrow := func(in *Input) {
		for i := range in.Node.GPUs {
			in.Node.GPUs[i].Health.PCIeWidth = gpu.Some(8)
		}
	}
	runTests(t, pcieLink, []test{
		{"narrow by design (case E04)", all(narrow, expect(baseline.Card{PCIeWidth: 8})), nil},
		{"narrower than good nodes", all(narrow, expect(baseline.Card{PCIeWidth: 16})), []string{
			"fail GPU-0: the PCIe link has 8 lanes, the baseline expects 16", "fail GPU-1: the PCIe link has 8 lanes, the baseline expects 16"}},
		{"a slot of an older generation", all(expect(baseline.Card{PCIeGen: 5}), on(1, func(g *gpu.GPU) { g.PCIeMaxGen = gpu.Some(3) })),
			[]string{"warn GPU-1: not as the baseline expects: PCIe generation: 3 instead of 5"}},
	})
}
