package host

import "gpuhooks/internal/gpu"

// Presence is tier 0: what is there without asking NVML. What could not be read
// is a fault in it.
func (f FS) Presence() gpu.Presence {
	var p gpu.Presence
	fault := func(path string, err error) bool {
		if err == nil {
			return false
		}
		p.Faults = append(p.Faults, PathFault(path, err))
		return true
	}
	loaded, err := f.ModuleLoaded()
	if !fault("/sys/module/nvidia", err) {
		p.ModuleLoaded = gpu.Some(loaded)
	}
	if loaded {
		p.DriverLoad = f.DriverLoad()
		if v, err := f.DriverVersion(); !fault("/proc/driver/nvidia/version", err) {
			p.ModuleVersion = gpu.Some(v)
		}
	}
	if on, err := f.HasDevice("nvidiactl"); !fault("/dev/nvidiactl", err) {
		p.Control = gpu.Some(on)
	}
	p.DeviceMinors, err = f.DeviceMinors()
	fault("/dev", err)
	p.Proc, err = f.ProcGPUs()
	fault("/proc/driver/nvidia/gpus", err)
	p.PCI, err = f.PCI()
	fault("/sys/bus/pci/devices", err)
	return p
}
