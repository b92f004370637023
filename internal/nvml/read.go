//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// Options say what to read of a GPU.
type Options struct {
	CountersOnly bool // identity, counters and what the deltas need; neither health nor processes
}

// UUID asks for the UUID of the GPU at index: two calls.
func (l *Library) UUID(index int) (string, *gpu.Fault) {
	_, uuid, fault := l.handle(index)
	return uuid, fault
}

func (l *Library) handle(index int) (nvml.Device, string, *gpu.Fault) {
	d, ret := l.api.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		f := newFault("nvmlDeviceGetHandleByIndex", ret)
		return nil, "", &f
	}
	uuid, ret := d.GetUUID()
	if ret != nvml.SUCCESS {
		f := newFault("nvmlDeviceGetUUID", ret)
		return nil, "", &f
	}
	return d, text(uuid).Or(""), nil
}

// decisiveCounters are those of an early answer.
var decisiveCounters = []gpu.Counter{
	gpu.ECCVolUncorrDRAM, gpu.ECCVolUncorrSRAM, gpu.ECCAggUncorrDRAM, gpu.ECCAggUncorrSRAM, gpu.RemapUncorrected,
}

// Read looks at the GPU at index. known is its identity from an earlier look
// in this boot and driver load, or nil; it is believed only if the UUID is
// still the same, and it names a GPU that does not answer any more.
//
// early, where not nil, gets the decisive readings (lost, recovery action,
// uncorrected errors, row remapping) before anything else is asked.
func (l *Library) Read(index int, known *gpu.Identity, o Options, early func(gpu.GPU)) gpu.GPU {
	g := gpu.GPU{Identity: gpu.Identity{Index: index}}
	var a answers
	done := func() gpu.GPU {
		g.Complete, g.Faults = true, a.faults
		return g
	}
	d, uuid, fault := l.handle(index)
	if fault != nil {
		a.add(*fault)
		if known != nil {
			g.Identity = *known
			g.Index = index
		}
		return done()
	}
	if known != nil && known.UUID == uuid {
		g.Identity = *known
		g.Index = index
	} else {
		g.Identity = l.identify(d, index, uuid, &a)
	}
	if a.lost() {
		return done()
	}

	fields := readFields(d, g.Identity, &a)
	g.Time = time.Now().UTC()
	g.Health = decisive(fields, &a)
	g.Counters = fields.counters(g.Identity)
	if early != nil {
		e := g
		e.Faults, e.Counters = a.faults, gpu.Counters{}
		for _, c := range decisiveCounters {
			if v, ok := g.Counters[c]; ok {
				e.Counters[c] = v
			}
		}
		early(e)
	}
	if a.lost() {
		return done()
	}

	g.Health.NVLinksActive = fields.activeLinks(linksOf(g.Identity), &a)
	g.Health.NVLinkBER = fields.worstBER(linksOf(g.Identity))
	g.Readings = gpu.Readings{}
	fields.readings(g.Readings)
	if m, ok := l.readMemory(d, &a); ok {
		g.Health.MemoryTotal = gpu.Some(m.total)
		g.Readings[gpu.MemoryUsed] = float64(m.used)
	}
	if o.CountersOnly {
		readMIGMode(d, g.Identity, &g.Health, &a)
	} else {
		l.readHealth(d, g.Identity, &g.Health, &a)
	}
	if a.lost() {
		return done()
	}

	sample, _ := l.NewGPMSample()
	defer l.FreeGPMSample(sample)
	mig := g.Health.MIG.Or(gpu.Switch{}).Current
	if !mig { // what a card in MIG mode does as a whole is nobody's activity
		g.Health.GPMSupported = gpu.Some(l.readGPMCounts(d, -1, sample, g.Counters, &a))
	}
	var list []process
	if !o.CountersOnly {
		readTemperature(d, g.Readings, &a)
		readFan(d, g.Identity, g.Readings, &a)
		readPower(d, g.Readings, &a)
		if !mig {
			readUtilization(d, g.Readings, &a)
			l.readMargin(d, g.Identity, g.Readings, &a)
			readSMClock(d, g.Readings, &a)
		}
		list = readProcesses(d, &a)
		g.Processes = all(list)
	}
	if mig {
		g.Instances = l.readInstances(d, g.Identity, list, sample, o, &a)
		for _, in := range g.Instances {
			if in.Counters != nil {
				g.Health.GPMSupported = gpu.Some(true)
			}
		}
		if !o.CountersOnly {
			g.Processes = of(list, -1, -1)
		}
	}
	return done()
}
