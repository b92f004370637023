//go:build cgo

package nvml

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// Device is a GPU or a MIG device that is read again and again while jobs run
// on it. It is used by one goroutine at a time.
type Device struct {
	lib    *Library
	handle nvml.Device
	parent nvml.Device // of a MIG device
	gi     int         // -1: a whole GPU

	ask    *gpmAsk // used again and again
	fields []nvml.FieldValue
	seen   uint64 // time of the newest entry read from the driver's utilisation ring, µs
	lacks  struct{ gpm, ring, utilization, memory, temperature, clock bool }
}

// Point is what a device says at one time. Its maps are used again by the next
// Read into it.
type Point struct {
	Time      time.Time
	Readings  gpu.Readings // momentary values; GPU-Util is the mean since the last Read
	Energy    gpu.Opt[uint64]
	GPM       bool // the sample that was given is filled
	Processes []gpu.Process
	Faults    []gpu.Fault
}

// Extent says how much Read asks for.
type Extent int

// What Read asks for: at most eight calls.
const (
	Usual         Extent = iota // everything but processes
	WithProcesses               // processes instead of temperature and clock
	Last                        // what a run that ends needs: its processes are gone, so neither memory, temperature nor clock
)

// Device finds a GPU or MIG device by its UUID.
func (l *Library) Device(uuid string) (*Device, *gpu.Fault) {
	h, ret := l.api.DeviceGetHandleByUUID(uuid)
	if ret != nvml.SUCCESS {
		f := newFault("nvmlDeviceGetHandleByUUID", ret)
		return nil, &f
	}
	d := &Device{lib: l, handle: h, gi: -1, ask: &gpmAsk{}}
	if strings.HasPrefix(uuid, "MIG-") {
		parent, ret := h.GetDeviceHandleFromMigDeviceHandle()
		if ret != nvml.SUCCESS {
			f := newFault("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", ret)
			return nil, &f
		}
		gi, ret := h.GetGpuInstanceId()
		if ret != nvml.SUCCESS {
			f := newFault("nvmlDeviceGetGpuInstanceId", ret)
			return nil, &f
		}
		d.parent, d.gi = parent, gi
	}
	d.fields = []nvml.FieldValue{{FieldId: nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION}, {FieldId: nvml.FI_DEV_POWER_AVERAGE}, {FieldId: nvml.FI_DEV_MEMORY_TEMP}}
	return d, nil
}

// Read reads the device into p, and its activity counters into s where s is
// not nil. What the device does not support is not asked for again.
func (d *Device) Read(p *Point, s *GPMSample, extent Extent) {
	if p.Readings == nil {
		p.Readings = gpu.Readings{}
	}
	clear(p.Readings)
	p.Time, p.Energy, p.GPM, p.Processes = time.Now(), gpu.Opt[uint64]{}, false, nil
	a := answers{faults: p.Faults[:0]}
	if s != nil && !d.lacks.gpm {
		from := d.handle
		if d.gi >= 0 {
			from = d.parent
		}
		before := len(a.faults)
		p.GPM = d.lib.fill(s, from, d.gi, &a)
		d.lacks.gpm = !p.GPM && len(a.faults) == before
	}
	if d.gi < 0 && !a.lost() {
		d.readFields(p, &a)
		if extent != Last || !d.lacks.ring { // a momentary value would be that of no job
			d.readUtilization(p, &a)
		}
	}
	if !d.lacks.memory && extent != Last && !a.lost() {
		before := len(a.faults)
		if m, ok := d.lib.readMemory(d.handle, &a); ok {
			p.Readings[gpu.MemoryUsed] = float64(m.used)
		} else {
			d.lacks.memory = len(a.faults) == before
		}
	}
	switch {
	case d.gi >= 0 || a.lost():
	case extent == Usual:
		d.once(&d.lacks.temperature, p.Readings, &a, readTemperature)
		d.once(&d.lacks.clock, p.Readings, &a, readSMClock)
	case extent == WithProcesses:
		p.Processes = all(readProcesses(d.handle, &a))
	}
	p.Faults = a.faults
}

// Means adds the mean activity between two of the device's samples to r.
func (d *Device) Means(from, to *GPMSample, r gpu.Readings) *gpu.Fault {
	return d.lib.means(d.ask, from, to, r)
}

// once calls read unless it has found before that the device lacks the value.
func (d *Device) once(lacks *bool, r gpu.Readings, a *answers, read func(nvml.Device, gpu.Readings, *answers)) {
	if *lacks {
		return
	}
	values, faults := len(r), len(a.faults)
	read(d.handle, r, a)
	*lacks = len(r) == values && len(a.faults) == faults
}

func (d *Device) readFields(p *Point, a *answers) {
	if ret := d.handle.GetFieldValues(d.fields); !a.ok("nvmlDeviceGetFieldValues", ret) {
		return
	}
	for _, f := range d.fields {
		v, ok := decode(f)
		if !ok {
			continue
		}
		switch f.FieldId {
		case nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION:
			p.Energy = gpu.Some(v)
		case nvml.FI_DEV_POWER_AVERAGE:
			p.Readings[gpu.Power] = float64(v) / 1000
		case nvml.FI_DEV_MEMORY_TEMP:
			if v > 0 && v < 200 {
				p.Readings[gpu.MemTemperature] = float64(v)
			}
		}
	}
}

// readUtilization takes the mean of what the driver has noted since the last
// Read: about seven entries a second, kept for ten seconds. A momentary value
// would miss a job that ends between two ticks. Where the driver keeps no such
// ring, the momentary value must do.
func (d *Device) readUtilization(p *Point, a *answers) {
	if !d.lacks.ring {
		kind, ring, ret := d.handle.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, d.seen)
		if a.ok("nvmlDeviceGetSamples", ret) {
			sum, n := 0.0, 0
			newest := d.seen
			for _, s := range ring {
				if s.TimeStamp <= d.seen || kind != nvml.VALUE_TYPE_UNSIGNED_INT {
					continue
				}
				newest = max(newest, s.TimeStamp)
				if v, ok := percent(float64(binary.NativeEndian.Uint32(s.SampleValue[:]))); ok {
					sum += v
					n++
				}
			}
			first := d.seen == 0
			d.seen = newest
			if n > 0 && !first {
				p.Readings[gpu.Utilization] = sum / float64(n)
				return
			}
			if !first {
				return // nothing new since a moment ago
			}
		}
		d.lacks.ring = ret == nvml.ERROR_NOT_SUPPORTED
		if a.lost() {
			return
		}
	}
	d.once(&d.lacks.utilization, p.Readings, a, readUtilization)
}
