package check

import (
	"fmt"
	"testing"
	"time"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/gpu"
)

// surround adds what the health check reads around healthy cards: ports above
// them, an idle link, one InfiniBand port, and a look one hour before.
func surround(in *Input) {
	for i := range in.Node.Presence.PCI {
		d := &in.Node.Presence.PCI[i]
		d.Gen, d.MaxGen, d.MaxWidth = gpu.Some(1), gpu.Some(5), gpu.Some(16)
		d.AER = gpu.Counters{gpu.AERCorrectable: 70_000, gpu.AERNonFatal: 3, gpu.AERFatal: 1}
		slot := gpu.PCISlot{Address: fmt.Sprintf("00000000:%d1:00.0", i+1), MaxGen: gpu.Some(5), MaxWidth: gpu.Some(16),
			AER: gpu.Counters{gpu.AERCorrectable: 10, gpu.AERNonFatal: 0, gpu.AERFatal: 0}}
		d.Slot = gpu.Some(slot)
		p := &in.Node.Presence.Proc[i]
		p.Model = in.Node.GPUs[i].Name
		ago(in, d.Address, d.AER)
		ago(in, slot.Address, slot.AER)
	}
	port := gpu.Port{Device: "mlx5_0", Port: 1, State: "active", Physical: "linkup", Layer: "infiniband", Rate: gpu.Some(400.0),
		Counters: gpu.Counters{linkDowned: 2, linkIntegrity: 1}}
	ago(in, "mlx5_0/1", port.Counters)
	in.Node.Host = &gpu.Host{
		Daemons:    []string{"nv-fabricmanager", "nvidia-persistenced"},
		NVSwitches: 4,
		GPUDirect:  gpu.Some(gpu.GPUDirect{Peermem: true}),
		Ports:      []gpu.Port{port},
		Clock:      gpu.Some(gpu.Clock{Synchronised: true, MaxError: 0.01}),
		Dirs:       []gpu.Dir{{Path: "/var/spool/gpuhooks", Writable: true, Free: gpu.Some[uint64](1 << 30)}},
	}
}

// ago remembers counters of an hour before.
func ago(in *Input, key string, c gpu.Counters) {
	in.Memory.Last[key] = Before{Time: noon.Add(-time.Hour), Counters: c}
}

func onPCI(index int, change func(*gpu.PCIDevice)) func(*Input) {
	return func(in *Input) { change(&in.Node.Presence.PCI[index]) }
}

func onHost(change func(*gpu.Host)) func(*Input) {
	return func(in *Input) { change(in.Node.Host) }
}

func expecting(change func(*baseline.Baseline)) func(*Input) {
	return func(in *Input) { change(&in.Baseline) }
}

// unread is a row that every check of the host has but driver-stuck.
func unread() test {
	return test{"the host did not arrive", func(in *Input) { in.Node.Host = nil }, []string{"skip node: what surrounds the GPUs was not read"}}
}

func hostFaulty(call string) func(*Input) {
	return onHost(func(h *gpu.Host) {
		h.Faults = []gpu.Fault{{Call: call, Kind: gpu.FaultTimeout, Text: "no answer in time"}}
	})
}

func TestPCIDevices(t *testing.T) {
	both := expecting(func(b *baseline.Baseline) { b.Node.PCI = []string{"00000000:10:00.0", "00000000:20:00.0"} })
	bind := func(driver string) func(*Input) {
		return func(in *Input) {
			in.Node.Presence.PCI[1].Driver = driver
			in.Node.Presence.Proc = in.Node.Presence.Proc[:1]
			drop(in, 1)
		}
	}
	gone := func(in *Input) { in.Node.Presence.PCI = in.Node.Presence.PCI[:1] }
	runTests(t, pciDevices, []test{
		{"as the baseline says", both, nil},
		{"not on the bus", all(both, bind(""), gone), []string{"fail 00000000:20:00.0: it is not on the PCI bus, and the baseline has it"}},
		{"left the bus under the driver", gone, []string{"fail GPU-1: the driver has it, and it is not on the PCI bus any more"}},
		{"vfio-pci, nobody says whether meant so", bind("vfio-pci"), []string{"warn 00000000:20:00.0: it is bound to vfio-pci, not to nvidia"}},
		{"vfio-pci, against the baseline", all(both, bind("vfio-pci")), []string{"fail 00000000:20:00.0: it is bound to vfio-pci, not to nvidia, and the baseline has it"}},
		{"vfio-pci, meant so", all(expecting(func(b *baseline.Baseline) { b.Node.PCI = []string{"00000000:10:00.0"} }), bind("vfio-pci")), nil},
		{"no driver", bind(""), []string{"warn 00000000:20:00.0: no driver holds it"}},
		{"bound and not shown", all(bind("nvidia")), []string{"fail 00000000:20:00.0: the driver holds it and does not show it in /proc/driver/nvidia/gpus"}},
		{"no /proc/driver/nvidia, as in a container", func(in *Input) { in.Node.Presence.Proc = nil }, nil},
		{"one more", expecting(func(b *baseline.Baseline) { b.Node.PCI = []string{"00000000:10:00.0"} }), []string{"warn GPU-1: the baseline does not have it"}},
		{"a prolog of another card", all(gone, func(in *Input) { in.Only = []string{"GPU-0"} }), nil},
		{"no bus", func(in *Input) { in.Node.Presence.PCI = nil }, []string{"skip node: no GPU is on a PCI bus"}},
		{"the bus could not be read", func(in *Input) {
			in.Node.Presence.Faults = []gpu.Fault{{Call: "/sys/bus/pci/devices", Code: 13, Kind: gpu.FaultPermission}}
		}, []string{"error node: /sys/bus/pci/devices: permission (code 13)"}},
		{"no driver at all", func(in *Input) {
			in.Node.Presence.ModuleLoaded = gpu.Some(false)
			in.Node.Presence.PCI[1].Driver = ""
		}, nil},
	})
}

func TestDeviceCaps(t *testing.T) {
	mig := func(in *Input) {
		in.Node.Presence.Caps = []gpu.MIGCap{{GPU: 7, GI: 2, CI: -1, Minor: 426}, {GPU: 7, GI: 2, CI: 0, Minor: 427}}
		in.Node.Presence.CapMinors = []int{1, 2, 426, 427}
	}
	lacks := func(in *Input) { in.Node.Presence.CapMinors = []int{1, 2, 426} }
	named := func(in *Input) { in.Expected.Caps = []int{426, 427} }
	got := []test{
		{"no MIG", func(*Input) {}, []string{"skip node: no MIG instance is known"}},
		{"all there", all(mig, named), nil},
		{"missing, gres.conf names it", all(mig, lacks, named), []string{"fail GPU-0: /dev/nvidia-caps/nvidia-cap427 of gres.conf (GPU instance 2, compute instance 0) is missing"}},
		{"missing, shown by the driver only", all(mig, lacks), []string{"warn GPU-0: /dev/nvidia-caps/nvidia-cap427 (GPU instance 2, compute instance 0) is missing"}},
		{"gres.conf names one that does not exist", named, []string{
			"fail node: /dev/nvidia-caps/nvidia-cap426 of gres.conf is missing, and 1 more"}},
		{"could not be read", all(mig, hostFaulty("nvidia-caps: devices")), []string{"error node: nvidia-caps: devices: timeout (code 0): no answer in time"}},
		{"no driver", all(mig, lacks, func(in *Input) { in.Node.Presence.ModuleLoaded = gpu.Some(false) }), []string{"skip node: the driver is not loaded"}},
		unread(),
	}
	runRows(t, deviceCaps, got)
}

func TestPCIeSlot(t *testing.T) {
	h100 := func(gen, width int) func(*Input) {
		return expecting(func(b *baseline.Baseline) {
			b.Cards = map[string]baseline.Card{"NVIDIA H100 80GB HBM3": {PCIeGen: gen, PCIeWidth: width}}
		})
	}
	port := func(index, gen, width int) func(*Input) {
		return onPCI(index, func(d *gpu.PCIDevice) {
			s := d.Slot.Or(gpu.PCISlot{})
			s.MaxGen, s.MaxWidth = gpu.Some(gen), gpu.Some(width)
			d.Slot = gpu.Some(s)
		})
	}
	runTests(t, pcieSlot, []test{
		{"as expected", h100(5, 16), nil},
		{"a slot of another generation than its sibling's", port(1, 4, 16), []string{
			"warn GPU-1: the card and its port 00000000:21:00.0 can only PCIe generation 4, those of 00000000:10:00.0 5"}},
		{"a narrow slot", port(1, 5, 8), []string{"warn GPU-1: the card and its port 00000000:21:00.0 can only 8 lanes, those of 00000000:10:00.0 16"}},
		{"all in older slots", all(port(0, 4, 16), port(1, 4, 16)), nil},
		{"another kind of card beside it", all(port(1, 4, 16), on(1, func(g *gpu.GPU) { g.Name = "NVIDIA A10" })), nil},
		{"less than the baseline", all(h100(5, 16), port(1, 4, 16)), []string{"fail GPU-1: the card and its port 00000000:21:00.0 can only PCIe generation 4 of the expected 5"}},
		{"fewer lanes than the baseline", all(h100(5, 16), onPCI(1, func(d *gpu.PCIDevice) { d.MaxWidth, d.Slot = gpu.Some(8), gpu.Opt[gpu.PCISlot]{} })), []string{
			"fail GPU-1: the card and its port can only 8 of the expected 16 lanes"}},
		{"the board is built so, and the baseline knows", all(h100(4, 8), port(1, 4, 8)), nil},
		{"a lost card tells nothing", onPCI(1, func(d *gpu.PCIDevice) {
			d.MaxGen, d.MaxWidth, d.Slot = gpu.Opt[int]{}, gpu.Opt[int]{}, gpu.Opt[gpu.PCISlot]{}
		}), nil},
		{"nothing is told", func(in *Input) {
			for i := range in.Node.Presence.PCI {
				in.Node.Presence.PCI[i] = gpu.PCIDevice{Address: in.Node.Presence.PCI[i].Address, Driver: "nvidia"}
			}
		}, []string{"skip node: the bus does not tell what its links could do"}},
		unread(),
	})
}

func TestPCIeAER(t *testing.T) {
	more := func(c gpu.Counter, n uint64) func(*Input) {
		return onPCI(1, func(d *gpu.PCIDevice) {
			d.AER = gpu.Counters{gpu.AERCorrectable: 70_000, gpu.AERNonFatal: 3, gpu.AERFatal: 1}
			d.AER[c] += n
		})
	}
	minute := func(in *Input) {
		b := in.Memory.Last["00000000:20:00.0"]
		b.Time = noon.Add(-time.Minute)
		in.Memory.Last["00000000:20:00.0"] = b
	}
	runTests(t, pcieAER, []test{
		{"fatal", more(gpu.AERFatal, 1), []string{"fail GPU-1: the card reported fatal PCIe errors: 1 in 1h0m0s"}},
		{"non-fatal", more(gpu.AERNonFatal, 2), []string{"warn GPU-1: the card reported non-fatal PCIe errors: 2 in 1h0m0s"}},
		{"many corrected", more(gpu.AERCorrectable, 1001), []string{"warn GPU-1: the card reported corrected PCIe errors: 1001 in 1h0m0s, 1001 an hour"}},
		{"some corrected", more(gpu.AERCorrectable, 1000), nil},
		{"a burst between two looks by hand", all(minute, more(gpu.AERCorrectable, 80)), nil},
		{"a storm between two looks by hand", all(minute, more(gpu.AERCorrectable, 90)), []string{"warn GPU-1: the card reported corrected PCIe errors: 90 in 1m0s, 1080 an hour"}},
		{"at the port", onPCI(1, func(d *gpu.PCIDevice) {
			s := d.Slot.Or(gpu.PCISlot{})
			s.AER = gpu.Counters{gpu.AERFatal: 1}
			d.Slot = gpu.Some(s)
		}), []string{"fail GPU-1: the port 00000000:21:00.0 reported fatal PCIe errors: 1 in 1h0m0s"}},
		{"never looked before", all(more(gpu.AERFatal, 1), func(in *Input) { clear(in.Memory.Last) }), []string{"skip node: no earlier look to compare with"}},
		{"without AER", func(in *Input) {
			for i := range in.Node.Presence.PCI {
				in.Node.Presence.PCI[i].AER, in.Node.Presence.PCI[i].Slot = nil, gpu.Opt[gpu.PCISlot]{}
			}
		}, []string{"skip node: neither the cards nor their ports count errors of the bus"}},
		{"could not be read", hostFaulty("/sys/bus/pci/devices/0000:20:00.0"), []string{"error node: /sys/bus/pci/devices/0000:20:00.0: timeout (code 0): no answer in time"}},
		unread(),
	})
}

func TestDriverStuck(t *testing.T) {
	thread := func(tid int, switches uint64) gpu.Stuck {
		return gpu.Stuck{PID: 2000, TID: tid, Name: "python", Where: "os_acquire_mutex [nvidia]", Start: gpu.Some[uint64](5), Job: "77", Switches: gpu.Some(switches)}
	}
	now := func(s ...gpu.Stuck) func(*Input) { return onHost(func(h *gpu.Host) { h.Stuck = s }) }
	seen := func(s gpu.Stuck, before time.Duration) func(*Input) {
		return func(in *Input) { in.Memory.Stuck = append(in.Memory.Stuck, Stuck{s, noon.Add(-before)}) }
	}
	const once = "warn node: process 2000 (python) of job 77 waits in os_acquire_mutex [nvidia]: a fault if a later look finds it there still"
	runTests(t, driverStuck, []test{
		{"seen once", now(thread(2000, 7)), []string{once}},
		{"seen again", all(now(thread(2000, 7)), seen(thread(2000, 7), time.Minute)), []string{
			"fail node: process 2000 (python) of job 77 waits in os_acquire_mutex [nvidia] for 1m0s without having run"}},
		{"seen again too soon", all(now(thread(2000, 7)), seen(thread(2000, 7), 20*time.Second)), []string{once}},
		{"it has run in between", all(now(thread(2000, 8)), seen(thread(2000, 7), time.Minute)), []string{once}},
		{"another process of that number", all(now(thread(2000, 7)), func(in *Input) {
			o := thread(2000, 7)
			o.Start = gpu.Some[uint64](4)
			seen(o, time.Minute)(in)
		}), []string{once}},
		{"three threads, one for long", all(now(thread(2001, 1), thread(2002, 2), thread(2003, 3)), seen(thread(2002, 2), time.Hour)), []string{
			"fail node: process 2000 (python) of job 77 waits in os_acquire_mutex [nvidia] (3 threads) for 1h0m0s without having run"}},
		{"it is gone", seen(thread(2000, 7), time.Minute), nil},
		{"the driver's own thread", all(now(gpu.Stuck{PID: 300, TID: 300, Name: "nv_queue", Where: "the driver's own thread"}),
			seen(gpu.Stuck{PID: 300, TID: 300}, time.Minute)), []string{"fail node: process 300 (nv_queue) waits in the driver's own thread for 1m0s without having run"}},
		{"not all could be seen", hostFaulty("/proc"), []string{"error node: /proc: timeout (code 0): no answer in time"}},
		{"the host did not arrive", func(in *Input) { in.Node.Host = nil }, []string{
			"error node: what surrounds the GPUs was not read before the deadline"}},
	})
}

func TestDaemons(t *testing.T) {
	want := func(names ...string) func(*Input) {
		return expecting(func(b *baseline.Baseline) { b.Node.Daemons = names })
	}
	none := onHost(func(h *gpu.Host) { h.Daemons = nil })
	runTests(t, daemons, []test{
		{"all that the baseline names", want("nv-fabricmanager", "nvidia-persistenced"), nil},
		{"none of them", all(none, want("nv-fabricmanager", "nvidia-imex", "nvidia-persistenced", "nv-hostengine")), []string{
			"fail FABRICMGR node: nv-fabricmanager does not run, and the baseline has it",
			"fail IMEXD node: nvidia-imex does not run, and the baseline has it",
			"warn PERSISTD node: nvidia-persistenced does not run, and the baseline has it",
			"warn HOSTENGINE node: nv-hostengine does not run, and the baseline has it",
		}},
		{"NVSwitches without a baseline", none, []string{"warn FABRICMGR node: nv-fabricmanager does not run beside 4 NVSwitches"}},
		{"NVSwitches, and the baseline wants another", all(none, want("nv-hostengine")), []string{"warn HOSTENGINE node: nv-hostengine does not run, and the baseline has it"}},
		{"no NVSwitches, no baseline", all(none, onHost(func(h *gpu.Host) { h.NVSwitches = 0 })), []string{"skip node: the baseline names no daemon"}},
		{"not all processes were seen", all(none, hostFaulty("/proc")), []string{"error FABRICMGR node: /proc: timeout (code 0): no answer in time"}},
		unread(),
	})
}

func TestGPUDirect(t *testing.T) {
	want := func(kind string) func(*Input) {
		return expecting(func(b *baseline.Baseline) { b.Node.GPUDirect = kind })
	}
	have := func(peermem, dmabuf bool) func(*Input) {
		return onHost(func(h *gpu.Host) { h.GPUDirect = gpu.Some(gpu.GPUDirect{Peermem: peermem, DMABuf: dmabuf}) })
	}
	runRows(t, gpuDirect, []test{
		{"not wanted", have(false, false), []string{"skip node: the baseline asks for none"}},
		{"peermem", want("peermem"), nil},
		{"either, by dma-buf", all(want("any"), have(false, true)), nil},
		{"peermem is gone", all(want("peermem"), have(false, true)), []string{"fail node: the module nvidia_peermem is not loaded, and the baseline asks for it"}},
		{"the closed module", all(want("dmabuf"), have(true, false)), []string{"fail node: dma-buf needs the open kernel module and Linux 5.12, and the baseline asks for it"}},
		{"neither", all(want("any"), have(false, false)), []string{"fail node: there is neither nvidia_peermem nor dma-buf, and the baseline asks for one"}},
		{"no driver", all(want("any"), onHost(func(h *gpu.Host) { h.GPUDirect = gpu.Opt[gpu.GPUDirect]{} })), []string{"skip node: the driver is not loaded"}},
		{"could not be read", all(want("any"), hostFaulty("gpudirect")), []string{"error node: gpudirect: timeout (code 0): no answer in time"}},
		unread(),
	})
}

func TestRDMAPort(t *testing.T) {
	want := expecting(func(b *baseline.Baseline) {
		b.Ports = map[string]baseline.Port{"mlx5_0/1": {Layer: "infiniband", Rate: 400}}
	})
	port := func(change func(*gpu.Port)) func(*Input) {
		return all(want, onHost(func(h *gpu.Host) { change(&h.Ports[0]) }))
	}
	runRows(t, rdmaPort, []test{
		{"as expected", want, nil},
		{"nothing is expected", func(*Input) {}, []string{"skip node: the baseline names no port"}},
		{"down", port(func(p *gpu.Port) { p.State, p.Physical = "down", "polling" }), []string{"fail node: port mlx5_0/1 is down (polling)"}},
		{"waits for the subnet manager", port(func(p *gpu.Port) { p.State = "init" }), []string{"warn node: port mlx5_0/1 is up and init: it waits for the subnet manager"}},
		{"slow", port(func(p *gpu.Port) { p.Rate = gpu.Some(100.0) }), []string{"fail node: port mlx5_0/1 runs at 100 of 400 Gb/s"}},
		{"of another layer", port(func(p *gpu.Port) { p.Layer = "ethernet" }), []string{"fail node: port mlx5_0/1 is ethernet, the baseline says infiniband"}},
		{"not there", all(want, onHost(func(h *gpu.Host) { h.Ports = nil })), []string{"fail node: port mlx5_0/1 is not there"}},
		{"could not be read", port(func(p *gpu.Port) { p.State = "" }), []string{"error node: /sys/class/infiniband/mlx5_0/ports/1: garbage (code 0): it has no state"}},
		{"the directory hangs", all(want, onHost(func(h *gpu.Host) { h.Ports = nil }), hostFaulty("/sys/class/infiniband")), []string{
			"error node: /sys/class/infiniband: timeout (code 0): no answer in time"}},
		unread(),
	})
}

func TestRDMAErrors(t *testing.T) {
	count := func(was, is gpu.Counters) func(*Input) {
		return func(in *Input) {
			in.Node.Host.Ports[0].Counters = is
			ago(in, "mlx5_0/1", was)
		}
	}
	runTests(t, rdmaErrors, []test{
		{"the link went down", count(gpu.Counters{linkDowned: 2}, gpu.Counters{linkDowned: 4}), []string{"fail node: port mlx5_0/1: the link went down 2 times in 1h0m0s"}},
		{"some integrity errors", count(gpu.Counters{linkIntegrity: 2}, gpu.Counters{linkIntegrity: 14}), nil},
		{"up to the ceiling", count(gpu.Counters{linkIntegrity: 2}, gpu.Counters{linkIntegrity: 15}), []string{
			"fail node: port mlx5_0/1: 13 link integrity errors in 1h0m0s or more: local_link_integrity_errors has reached its highest value 15 and counts no more"}},
		{"at the ceiling since long", count(gpu.Counters{linkDowned: 255}, gpu.Counters{linkDowned: 255}), []string{
			"skip node: full since an earlier look and counts no more: link_downed of port mlx5_0/1"}},
		{"counters were reset", count(gpu.Counters{linkDowned: 200}, gpu.Counters{linkDowned: 0}), nil},
		{"never looked before", func(in *Input) {
			in.Node.Host.Ports[0].Counters = gpu.Counters{linkDowned: 9}
			clear(in.Memory.Last)
		}, []string{"skip node: no earlier look to compare with"}},
		{"no port", onHost(func(h *gpu.Host) { h.Ports = nil }), []string{"skip node: the node has no such port"}},
		{"a function that refuses, and nobody needs", hostFaulty("/sys/class/infiniband/mlx5_0/ports/1"), nil},
		{"an expected port that refuses", all(hostFaulty("/sys/class/infiniband/mlx5_0/ports/1"), expecting(func(b *baseline.Baseline) {
			b.Ports = map[string]baseline.Port{"mlx5_0/1": {}}
		})), []string{"error node: /sys/class/infiniband/mlx5_0/ports/1: timeout (code 0): no answer in time"}},
		unread(),
	})
}

func TestClock(t *testing.T) {
	set := func(c gpu.Clock) func(*Input) { return onHost(func(h *gpu.Host) { h.Clock = gpu.Some(c) }) }
	sync := expecting(func(b *baseline.Baseline) { b.Node.ClockSync = true })
	runTests(t, clock, []test{
		{"chrony without rtcsync", set(gpu.Clock{MaxError: 0.02}), nil},
		{"and the baseline wants it", all(sync, set(gpu.Clock{MaxError: 0.02})), []string{"fail node: nothing synchronises the clock, and the baseline asks for it"}},
		{"nothing for long", set(gpu.Clock{MaxError: 16}), []string{"fail node: the clock is not synchronised and may be wrong by 16s"}},
		{"badly synchronised", set(gpu.Clock{Synchronised: true, MaxError: 1.5}), []string{"fail node: the clock is synchronised and may be wrong by 1.5s"}},
		{"unknown", onHost(func(h *gpu.Host) { h.Clock = gpu.Opt[gpu.Clock]{} }), []string{"skip node: the kernel does not tell"}},
		{"could not be asked", hostFaulty("adjtimex"), []string{"error node: adjtimex: timeout (code 0): no answer in time"}},
		unread(),
	})
}

func TestDirectories(t *testing.T) {
	dir := func(change func(*gpu.Dir)) func(*Input) { return onHost(func(h *gpu.Host) { change(&h.Dirs[0]) }) }
	runTests(t, directories, []test{
		{"read-only", dir(func(d *gpu.Dir) { d.Writable, d.Why = false, "read-only file system" }), []string{
			"fail node: /var/spool/gpuhooks cannot be written: read-only file system"}},
		{"nearly full", dir(func(d *gpu.Dir) { d.Free = gpu.Some[uint64](5 << 20) }), []string{"fail node: /var/spool/gpuhooks has 5 MiB left"}},
		{"hangs", hostFaulty("directory /var/spool/gpuhooks"), []string{"error node: directory /var/spool/gpuhooks: timeout (code 0): no answer in time"}},
		{"none was asked for", onHost(func(h *gpu.Host) { h.Dirs = nil }), []string{"skip node: no directory was asked for"}},
		unread(),
	})
}
