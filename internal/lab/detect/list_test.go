//go:build e2e

package detect

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/lab/stage"
)

// Groups of faults, in the order of the table.
func faults() []fault {
	return append(append(append(append(driverFaults(), kernelFaults()...), memoryFaults()...), cardFaults()...), nodeFaults()...)
}

func driverFaults() []fault {
	return []fault{
		{what: "driver not loaded", inject: set("driver.loaded=false"), check: "driver-loaded"},
		{what: "driver updated without a reboot: library and kernel module differ", inject: set("driver.mismatch=true"), check: "driver-mismatch"},
		{what: "nvmlInit never returns", inject: set("call.nvmlInit_v2=hang"), check: "probe-answer"},
		{what: "nvmlInit never returns, and has not for 30 s", inject: func(w *world) {
			w.Must(w.Set("call.nvmlInit_v2=hang"))
			w.look()
			w.age(31 * time.Second)
		}, check: "probe-answer"},
		{what: "a single call hangs on GPU 3", inject: set("gpu.3.call.nvmlDeviceGetMigMode=hang"), check: "probe-answer"},
		{what: "the probe sits in state D in the kernel, and KILL does not end it", inject: func(w *world) {
			group := stage.Freezer(w.t)
			w.Write("probe.sh", "#!/bin/sh\necho 0 >"+group+"/cgroup.procs\nexec "+w.Probe()+" \"$@\"\n")
			w.Write("gpuhooks.toml", strings.Replace(w.Read("gpuhooks.toml"), w.Probe(), w.Path("probe.sh"), 1))
		}, check: "probe-answer"},
		{what: "the library crashes the probe", inject: set("call.nvmlDeviceGetCount_v2=crash"), check: "probe-answer"},
		{what: "nvmlInit answers an unknown error", inject: set("call.nvmlInit_v2=UNKNOWN", "call.nvmlInitWithFlags=UNKNOWN"), check: "driver-loaded"},
		{what: "the library is gone", inject: func(w *world) { w.Must(os.Rename(w.Library(), w.Library()+".gone")) }, check: "driver-loaded"},
		{what: "one call answers UNKNOWN on GPU 3", inject: set("gpu.3.call.nvmlDeviceGetPersistenceMode=UNKNOWN"), check: "readings"},
		{what: "the firmware (GSP) of GPU 3 is dead: every reading fails", inject: func(w *world) {
			w.Must(w.Set("gpu.3.call.*=UNKNOWN", "gpu.3.call.nvmlDeviceGetHandleByIndex_v2=SUCCESS", "gpu.3.call.nvmlDeviceGetUUID=SUCCESS"))
		}, check: "gpu-silent"},
		{what: "GPU 3 cannot be opened: UNKNOWN", inject: set("gpu.3.call.nvmlDeviceGetHandleByIndex_v2=UNKNOWN"), check: "gpu-silent"},
		{what: "GPU 3 answers garbage", inject: set("gpu.3.call.nvmlDeviceGetCurrPcieLinkWidth=garbage"), check: "readings"},
	}
}

func kernelFaults() []fault {
	out := []fault{
		{what: "GPU 3 fell off the bus (XID 79, GPU_IS_LOST)", inject: func(w *world) {
			w.Must(w.Set("gpu.3.lost=true"))
			w.Must(w.Xid(3, 79, ""))
		}, check: "gpu-lost"},
		{what: "GPU 3 is lost, the kernel log says nothing", inject: set("gpu.3.lost=true"), check: "gpu-lost"},
		{what: "GPU 3 is gone from NVML and the bus", inject: set("gpu.3.absent=true"), check: "gpu-count"},
	}
	for _, code := range []int{13, 31, 43, 45, 46, 48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 109, 110, 119, 120, 136, 140, 143, 145} {
		f := fault{what: fmt.Sprintf("XID %d on GPU 3", code), inject: xid(code), check: "xid"}
		switch code {
		case 79:
			f.check = "gpu-lost"
		case 13, 31, 43, 45, 63, 92, 94: // the application's, contained, or already dealt with
			f.check = ""
		}
		out = append(out, f)
	}
	return append(out,
		fault{what: "XID 154 on GPU 3: GPU reset required", inject: log("NVRM: Xid (PCI:0000:61:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"), check: "xid"},
		fault{what: "XID 154 on GPU 3, then back to none", inject: log(
			"NVRM: Xid (PCI:0000:61:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
			"NVRM: Xid (PCI:0000:61:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"), check: ""},
		fault{what: "XID 13 of three jobs on GPU 3", inject: func(w *world) {
			for i, pid := range []int{101, 202, 303} {
				w.record(4, 500_000+i, time.Duration(i+1)*2*time.Minute, fmt.Sprintf("NVRM: Xid (PCI:0000:61:00): 13, pid=%d, name=python, Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0): Out Of Range Address", pid))
				w.look()
				w.Forget()
			}
		}, check: "repeated-app-xid"},
		fault{what: "fatal SXid of an NVSwitch", inject: log("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"), check: "xid"},
		fault{what: "storm: 10 000 lines of XID 45", inject: storm(10_000, "NVRM: Xid (PCI:0000:61:00): 45, pid=4242, name=python, Ch 00000008"), check: ""},
		fault{what: "storm of foreign lines: 10 000 records", inject: storm(10_000, "systemd[1]: Started something."), check: ""},
		fault{what: "XID 79 in a record that a user wrote", inject: func(w *world) {
			w.record(12, 500_000, time.Minute, "NVRM: Xid (PCI:0000:61:00): 79, pid=1, GPU has fallen off the bus.")
		}, check: ""},
		fault{what: "the kernel log cannot be read", inject: remove("dev/kmsg"), check: "xid"},
	)
}

func memoryFaults() []fault {
	return []fault{
		{what: "uncorrected ECC error in memory of GPU 3 since the last look", inject: set("gpu.3.ecc.volatile.uncorrected.dram=1", "gpu.3.ecc.aggregate.uncorrected.dram=1"), check: "ecc-uncorrected"},
		{what: "uncorrected ECC error in SRAM of GPU 3 since the last look", inject: set("gpu.3.ecc.volatile.uncorrected.sram=2"), check: "ecc-uncorrected"},
		{what: "SRAM error threshold exceeded on GPU 3", inject: set("gpu.3.ecc.sram_threshold=true"), check: "sram-threshold"},
		{what: "17 000 corrected ECC errors a second on GPU 3", inject: func(w *world) {
			w.age(2 * time.Minute)
			w.Must(w.Set("gpu.3.ecc.volatile.corrected.dram=2040000"))
		}, check: "ecc-corrected"},
		{what: "row remap failed on GPU 3", inject: set("gpu.3.remap.failed=true"), check: "row-remap-failure"},
		{what: "row remap pending on GPU 3", inject: set("gpu.3.remap.pending=true"), check: "row-remap-pending"},
		{what: "two banks of GPU 3 have no spare row left", inject: set("gpu.3.remap.histogram.none=2"), check: "spare-rows"},
		{what: "512 rows remapped because of uncorrected errors on GPU 3", inject: set("gpu.3.remap.uncorrectable=512"), check: "spare-rows"},
		{what: "memory of GPU 3 beyond repair", inject: set("gpu.3.unrepairable=true"), check: "unrepairable-memory"},
		{what: "ECC switched off on GPU 3", inject: set("gpu.3.ecc=false"), check: "ecc-mode"},
		{what: "ECC change pending on GPU 3", inject: set("gpu.3.ecc.pending=false"), check: "ecc-mode"},
		{what: "64 pages retired on a V100", profile: "v100-470", inject: set("gpu.1.retired.dbe=64"), check: "retired-pages"},
		{what: "page retirement pending on a V100", profile: "v100-470", inject: set("gpu.1.retired.pending=true"), check: "retired-pages"},
		{what: "channel repair pending on a B200", profile: "b200", inject: set("gpu.3.repair.channel=true"), check: "repair-pending"},
	}
}

func cardFaults() []fault {
	return []fault{
		{what: "recovery action of GPU 3: reset", inject: set("gpu.3.recovery=1"), check: "recovery-action"},
		{what: "recovery action of GPU 3: drain P2P", inject: set("gpu.3.recovery=3"), check: "recovery-action"},
		{what: "recovery action of GPU 3: a number that no version knows", inject: set("gpu.3.recovery=42"), check: "recovery-action"},
		{what: "GPU 3 answers RESET_REQUIRED", inject: set("gpu.3.call.*=RESET_REQUIRED"), check: "reset-required"},
		{what: "PCIe link of GPU 3 has 8 of 16 lanes, its siblings 16", inject: set("gpu.3.pcie.width=8"), check: "pcie-link"},
		{what: "one NVLink of GPU 3 is down", inject: set("gpu.3.nvlink.5.active=false"), check: "nvlink"},
		{what: "all NVLinks of GPU 3 are down", inject: set("gpu.3.nvlink.*.active=false"), check: "nvlink"},
		{what: "NVLink errors grow on GPU 3", inject: func(w *world) {
			w.age(2 * time.Minute)
			w.Must(w.Set("gpu.3.nvlink.2.crc=100000"))
		}, check: "nvlink-errors"},
		{what: "fabric of GPU 3 is still in progress", inject: set("gpu.3.fabric.state=2"), check: "fabric-state"},
		{what: "fabric of GPU 3 completed without success", inject: set("gpu.3.fabric.status=21"), check: "fabric-state"},
		{what: "fabric health of GPU 3: degraded bandwidth", inject: set("gpu.3.fabric.health=0x5569", "gpu.3.fabric.summary=2"), check: "fabric-state"},
		{what: "GPU 3 is slowed down by heat, by hardware, most of the time", inject: func(w *world) {
			w.Must(w.Set("gpu.3.throttle.hw_thermal=0.9"))
			time.Sleep(300 * time.Millisecond)
			w.age(5 * time.Minute)
		}, check: "throttle"},
		{what: "power brake on GPU 3 now", inject: set("gpu.3.throttle.reasons=0x88"), check: "throttle"},
		{what: "GPU 3 is 1 °C below its slowdown threshold", inject: func(w *world) {
			w.age(time.Minute)
			w.Must(w.Set("gpu.3.temperature=86"))
			w.look()
			w.age(time.Minute)
		}, check: "temperature"},
		{what: "power limit of GPU 3 lowered to 400 W", inject: set("gpu.3.power.limit=400"), check: "power-limit"},
		{what: "persistence mode off on GPU 3", inject: set("gpu.3.persistence=false"), check: "persistence"},
		{what: "compute mode of GPU 3: prohibited", inject: set("gpu.3.compute_mode=2"), check: "compute-mode"},
		{what: "MIG mode change pending on GPU 3", inject: set("gpu.3.mig.pending=true"), check: "mig-pending"},
		{what: "MIG on without an instance on GPU 3", inject: set("gpu.3.mig.mode=true"), check: "mig-empty"},
		{what: "GPU 3 has another VBIOS than its siblings", before: set("gpu.3.vbios=96.00.30.00.01"), check: "siblings"},
		{what: "process without a job on GPU 3, seen twice", inject: func(w *world) {
			w.Must(w.Set("gpu.3.process." + strconv.Itoa(os.Getpid()) + "=memory=2GiB,type=compute"))
			w.look()
			w.age(5 * time.Second)
		}, check: "left-over-processes"},
		{what: "30 GiB in use on GPU 3 without a process", inject: func(w *world) {
			w.age(time.Minute)
			w.Must(w.Set("gpu.3.memory.used=30GiB"))
			w.look()
			w.age(time.Minute)
		}, check: "memory-in-use"},
		{what: "confidential computing on, GPUs not ready", inject: set("cc.enabled=true", "cc.ready=false"), check: "conf-compute"},
		{what: "vGPU guest without a licence", profile: "vgpu-guest", inject: set("gpu.0.license=false"), check: "vgpu-licence"},
	}
}

func nodeFaults() []fault {
	return []fault{
		{what: "/dev/nvidia3 is missing", inject: set("gpu.3.device_node=false"), check: "device-nodes"},
		{what: "/dev/nvidiactl is missing", inject: remove("dev/nvidiactl"), check: "device-nodes"},
		{what: "GPU 3 is bound to vfio-pci", inject: set("gpu.3.pci.driver=vfio-pci"), check: "pci-devices"},
		{what: "capability devices of the MIG instances are missing", profile: "dgx-a100-mig", inject: set("gpu.*.mig.device_nodes=false"), check: "device-caps"},
		{what: "fatal PCIe error (AER) at GPU 3", inject: later(time.Minute, "gpu.3.aer.fatal=1"), check: "pcie-aer"},
		{what: "5 000 corrected PCIe errors at the port of GPU 3", inject: later(time.Minute, "gpu.3.slot.aer.correctable=5000"), check: "pcie-aer"},
		{what: "the port of GPU 3 can only generation 4", inject: set("gpu.3.pcie.slot.gen=4"), check: "pcie-slot"},
		{what: "a process of job 77 hangs in the driver (state D), seen twice", inject: func(w *world) {
			w.Must(w.Set("host.stuck.2000=job=77"))
			w.look()
			w.age(31 * time.Second)
		}, check: "driver-stuck"},
		{what: "a process hangs in the driver (state D), seen once", inject: set("host.stuck.2000=job=77"), check: "driver-stuck"},
		{what: "fabric manager does not run beside NVSwitches", inject: set("host.daemons=none"), check: "daemons"},
		{what: "persistence daemon does not run, and the baseline has it", baseline: true, inject: set("host.daemons=nv-fabricmanager"), check: "daemons"},
		{what: "InfiniBand port down, and the baseline has it", baseline: true, before: set("ib=1"), inject: set("ib.0.state=DOWN"), check: "rdma-port"},
		{what: "InfiniBand link went down and up again", before: set("ib=1"), inject: later(time.Minute, "ib.0.link_downed=1"), check: "rdma-errors"},
		{what: "peermem not loaded, and the baseline needs it", baseline: true, inject: func(w *world) {
			w.Must(w.Set("host.peermem=false"))
			w.baseline(func(s string) string {
				return regexp.MustCompile(`(?m)^gpudirect = .*`).ReplaceAllString(s, `gpudirect = "peermem"`)
			})
		}, check: "gpudirect"},
		{what: "application clock of GPU 3 set low, and the baseline has it higher", baseline: true, inject: set("gpu.3.clock.app=1200"), check: "clocks"},
		{what: "a GPU passed through to a guest, and the baseline has whole ones", baseline: true, inject: func(w *world) {
			w.baseline(func(s string) string {
				return strings.ReplaceAll(s, "virtualization = \"none\"", "virtualization = \"passthrough\"")
			})
		}, check: "virtualization"},
		{what: "gres.conf hands out whole GPUs, and they are divided", profile: "dgx-a100-mig", inject: func(w *world) { w.wholeGPUs() }, check: "mig-layout"},
		{what: "clock not synchronised and off by 5 s", inject: set("host.clock=unsynchronised 5"), check: "clock"},
		{what: "state directory full", inject: func(w *world) {}, toml: "[limits]\ndir_free_mib = 100000000\n", check: "directories"},
		{what: "driver other than the baseline's", baseline: true, inject: func(w *world) {
			w.baseline(func(s string) string { return strings.ReplaceAll(s, "580.95.05", "580.65.06") })
		}, check: "versions"},
		{what: "a GPU less than the baseline has", baseline: true, inject: set("gpu.7.absent=true"), check: "gpu-count"},
		{what: "the baseline file is broken", baseline: true, inject: func(w *world) {
			w.baseline(func(s string) string { return s + "\nnonsense" })
		}, check: "baseline"},
	}
}

// later injects after that time has passed, so that a rate is one.
func later(d time.Duration, kv ...string) func(*world) {
	return func(w *world) {
		w.age(d)
		w.Must(w.Set(kv...))
	}
}
