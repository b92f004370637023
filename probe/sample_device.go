//go:build cgo

package main

import (
	"fmt"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/nvml"
	"gpuhooks/internal/sampler"
)

// leastPair is how far apart two activity samples must be to mean something:
// the driver refreshes them ten times a second.
const leastPair = 100 * time.Millisecond

// leastEnergy is the shortest time over which the energy counter, which the
// driver refreshes now and then, makes a power.
const leastEnergy = 250 * time.Millisecond

// gpmBuffer is an activity sample that the device and the runs that began with
// it share. Only the loop counts its users.
type gpmBuffer struct {
	sample *nvml.GPMSample // nil: the driver has none
	at     time.Time
	users  int
}

// device is one GPU or MIG instance while runs use it. Workers make the driver's
// calls: one that hangs costs only this device. The loop touches it only while
// it is not busy.
type device struct {
	uuid string
	lib  *nvml.Library
	runs []*part // who gets its intervals

	done chan struct{} // an answer is there
	busy bool

	handle    *nvml.Device // nil: to be looked for
	lost      bool         // the last read failed
	now, then nvml.Point   // the last read and the one before
	buffer    *gpmBuffer   // of now; nil if the device has no activity samples
	before    *gpmBuffer   // of then
	means     gpu.Readings // from then to now
	interval  bool         // means hold an interval
	reset     bool         // the device began anew between the two
	faults    []gpu.Fault
}

// job is one read of a device.
type job struct {
	dev    *device
	batch  *batch
	extent nvml.Extent
	into   *gpmBuffer
	ending []*part // runs that end with this read
}

// part is a run's share in a device.
type part struct {
	dev   *device
	acc   *sampler.Device
	first *gpmBuffer // where the time that exact may speak of began
	from  time.Time  // first read of the run
	exact gpu.Readings
	over  float64 // seconds that exact stands for
}

func newDevice(uuid string, lib *nvml.Library) *device {
	return &device{uuid: uuid, lib: lib, done: make(chan struct{}, 1), means: gpu.Readings{}}
}

// read takes one look at the device and computes what happened since the last.
func (d *device) read(j job) {
	defer func() {
		if p := recover(); p != nil {
			d.interval = false
			d.faults = append(d.faults, gpu.Fault{Call: "sampler", Kind: gpu.FaultOther, Text: fmt.Sprintf("panic: %v", p)})
		}
	}()
	d.now, d.then = d.then, d.now
	d.before, d.buffer = d.buffer, j.into
	d.interval, d.reset, d.faults = false, false, nil
	clear(d.means)
	if d.handle == nil {
		h, fault := d.lib.Device(d.uuid)
		if fault != nil {
			d.fail(*fault)
			return
		}
		d.handle = h
	}
	var s *nvml.GPMSample
	if j.into != nil {
		s = j.into.sample
	}
	d.handle.Read(&d.now, s, j.extent)
	if d.now.GPM {
		j.into.at = d.now.Time
	}
	d.faults = append(d.faults, d.now.Faults...)
	if gone(d.faults) {
		d.fail()
		return
	}
	if d.lost { // it answers again: what it was before is another life
		d.lost, d.reset = false, !d.then.Time.IsZero()
		return
	}
	d.compute(j)
}

// gone says that a device does not answer any more.
func gone(faults []gpu.Fault) bool {
	return gpu.HasFault(faults, gpu.FaultLost) || gpu.HasFault(faults, gpu.FaultResetRequired) || driverGone(faults)
}

// driverGone says that the driver itself was taken away: this process holds a
// library that speaks to nobody.
func driverGone(faults []gpu.Fault) bool {
	const uninitialized = 1
	for _, f := range faults {
		if f.Kind == gpu.FaultNoDriver || f.Kind == gpu.FaultMismatch || f.Code == uninitialized {
			return true
		}
	}
	return false
}

// fail notes that there is nothing to be had, and that the handle is stale.
func (d *device) fail(f ...gpu.Fault) {
	d.faults = append(d.faults, f...)
	d.lost, d.handle, d.now.Time = true, nil, time.Now()
	if d.buffer != nil {
		d.buffer.at = time.Time{}
	}
}

// compute fills means with what happened between the two reads.
func (d *device) compute(j job) {
	if d.then.Time.IsZero() {
		return
	}
	d.interval = true
	elapsed := d.now.Time.Sub(d.then.Time)
	from, known := d.then.Energy.Get()
	to, knows := d.now.Energy.Get()
	if known && knows && to < from {
		d.reset, d.interval = true, false
		return
	}
	for m, v := range d.now.Readings {
		d.means[m] = v
	}
	for m, v := range d.then.Readings { // what this read did not ask for still stands
		if _, asked := d.means[m]; !asked && (m != gpu.Utilization || j.extent == nvml.Last) {
			d.means[m] = v
		}
	}
	if known && knows && elapsed >= leastEnergy {
		d.means[gpu.Power] = float64(to-from) / 1000 / elapsed.Seconds() // mJ
	}
	if pairable(d.before, d.buffer) {
		if fault := d.handle.Means(d.before.sample, d.buffer.sample, d.means); fault != nil {
			d.faults = append(d.faults, *fault)
		}
	}
	for _, p := range j.ending {
		if !pairable(p.first, d.buffer) {
			continue
		}
		p.exact, p.over = gpu.Readings{}, d.buffer.at.Sub(p.first.at).Seconds()
		if fault := d.handle.Means(p.first.sample, d.buffer.sample, p.exact); fault != nil {
			d.faults = append(d.faults, *fault)
		}
	}
}

// pairable says that two samples are both filled and far enough apart.
func pairable(a, b *gpmBuffer) bool {
	return a != nil && b != nil && !a.at.IsZero() && !b.at.IsZero() && b.at.Sub(a.at) >= leastPair
}

// deliver hands the last read to the runs that have the device.
func (d *device) deliver() {
	for _, p := range d.runs {
		for _, f := range d.faults {
			p.acc.Fault(f)
		}
		switch {
		case d.reset:
			p.acc.Reset()
			p.begin()
		case d.interval:
			p.acc.Add(sampler.Interval{From: d.then.Time, To: d.now.Time, Means: d.means})
		case d.lost:
			p.acc.Gap()
		}
		if len(d.now.Processes) > 0 {
			p.acc.Saw(d.now.Processes)
		}
	}
}

// begin lets a part's exact time begin with the device's last read.
func (p *part) begin() {
	p.drop()
	if p.dev.buffer != nil && !p.dev.lost {
		p.first = p.dev.buffer
		p.first.users++
	}
}

// drop gives the part's first sample back.
func (p *part) drop() {
	if p.first != nil {
		p.first.users--
		p.first = nil
	}
}
