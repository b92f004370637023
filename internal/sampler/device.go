// Package sampler accumulates what gpu-probe sees of a run's devices: means
// weighted by time, extremes, quantiles, idle times and a thinned course. It
// does no I/O and asks no clock.
package sampler

import (
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
)

// IdleBelow is the activity (SM active, else GPU-Util) below which a device
// counts as idle.
const IdleBelow = 0.01

// course are the metrics of which a course over time is kept.
var course = map[gpu.Metric]bool{
	gpu.Utilization: true, gpu.SMActive: true, gpu.TensorActive: true,
	gpu.DRAMActive: true, gpu.MemoryUsed: true, gpu.Power: true,
}

const (
	maxProcesses = 64
	maxFaults    = 16
)

// Options say how a device is accumulated.
type Options struct {
	Start  time.Time     // first sample of the run: the course counts from here
	Tick   time.Duration // usual interval
	Series int           // most points of a course
}

// Interval is what was measured of a device between two points in time. Means
// may miss any metric.
type Interval struct {
	From, To time.Time
	Means    gpu.Readings
}

// Device accumulates one device of one run.
type Device struct {
	o       Options
	sums    runs.DeviceSums // what needs no computing
	stats   map[gpu.Metric]*stat
	covered float64

	known      bool // there is some measure of activity
	idle       float64
	stretch    float64 // idle seconds up to now
	longest    float64
	lastActive time.Time
}

// New returns an empty accumulator for the GPU or MIG instance.
func New(uuid string, o Options) *Device {
	d := &Device{o: o, stats: map[gpu.Metric]*stat{}}
	d.sums.UUID, d.sums.Source = uuid, gpu.SourceNone
	return d
}

// Resume goes on from what an earlier sampler of the same run left.
func Resume(old runs.DeviceSums, o Options) *Device {
	d := New(old.UUID, o)
	d.sums.Source, d.sums.Gaps, d.sums.Resets = old.Source, old.Gaps, old.Resets
	d.sums.Processes, d.sums.Faults = old.Processes, old.Faults
	d.covered = old.Covered
	d.idle, d.known = old.Idle.Get()
	d.longest = old.LongestIdle.Or(0)
	d.lastActive = old.LastActive.Or(time.Time{})
	for m, s := range old.Stats {
		d.stat(m).resume(s, old.Series[m])
	}
	return d
}

func (d *Device) stat(m gpu.Metric) *stat {
	s := d.stats[m]
	if s == nil {
		limit := 0
		if course[m] {
			limit = d.o.Series
		}
		s = newStat(d.o.Tick.Seconds(), limit)
		d.stats[m] = s
	}
	return s
}

// Add takes one interval.
func (d *Device) Add(i Interval) {
	seconds := i.To.Sub(i.From).Seconds()
	if seconds <= 0 || len(i.Means) == 0 {
		return
	}
	if seconds > 3*d.o.Tick.Seconds() {
		d.sums.Gaps++
	}
	d.covered += seconds
	end := i.To.Sub(d.o.Start).Seconds()
	for m, v := range i.Means {
		d.stat(m).add(end, seconds, v)
	}
	activity, ok := i.Means[gpu.SMActive]
	switch _, util := i.Means[gpu.Utilization]; {
	case ok:
		d.sums.Source = gpu.SourceGPM
	case util:
		activity, ok = i.Means[gpu.Utilization]
		if d.sums.Source == gpu.SourceNone {
			d.sums.Source = gpu.SourceNVML
		}
	}
	if ok {
		d.active(activity, seconds, i.To)
	}
}

func (d *Device) active(activity, seconds float64, to time.Time) {
	d.known = true
	if activity >= IdleBelow {
		d.stretch = 0
		d.lastActive = to.UTC()
		return
	}
	d.idle += seconds
	d.stretch += seconds
	d.longest = max(d.longest, d.stretch)
}

// Gap notes an interval of which nothing could be read.
func (d *Device) Gap() {
	d.sums.Gaps++
	d.stretch = 0
	d.Break()
}

// Reset notes that the device or its driver began anew.
func (d *Device) Reset() {
	d.sums.Resets++
	d.stretch = 0
	d.Break()
}

// Break ends the stretch of time that Exact may speak of.
func (d *Device) Break() {
	for _, s := range d.stats {
		s.end()
	}
}

// Exact replaces the means since the last Break by those that the driver
// measured over all of that time in one piece.
func (d *Device) Exact(means gpu.Readings, seconds float64) {
	for m, v := range means {
		if s := d.stats[m]; s != nil {
			s.exact(v, seconds)
		} else {
			end := seconds
			d.stat(m).add(end, seconds, v)
		}
	}
}

// Saw notes processes on the device.
func (d *Device) Saw(list []gpu.Process) {
next:
	for _, p := range list {
		for i, old := range d.sums.Processes {
			if old.PID == p.PID && old.Start == p.Start {
				if p.Memory.Or(0) > old.Memory.Or(0) { // its highest use
					d.sums.Processes[i].Memory = p.Memory
				}
				continue next
			}
		}
		if len(d.sums.Processes) < maxProcesses {
			d.sums.Processes = append(d.sums.Processes, p)
		}
	}
}

// Fault notes a reading that failed, once.
func (d *Device) Fault(f gpu.Fault) {
	if len(d.sums.Faults) >= maxFaults {
		return
	}
	for _, old := range d.sums.Faults {
		if old == f {
			return
		}
	}
	d.sums.Faults = append(d.sums.Faults, f)
}

// Sums returns what was accumulated so far.
func (d *Device) Sums() runs.DeviceSums {
	out := d.sums
	out.Covered = round(d.covered, 6)
	out.Stats = map[gpu.Metric]runs.Stat{}
	out.Series = map[gpu.Metric][]runs.Sample{}
	for m, s := range d.stats {
		out.Stats[m] = s.stat()
		if len(s.series.points) > 0 {
			out.Series[m] = s.series.samples()
		}
	}
	if d.known {
		out.Idle, out.LongestIdle = gpu.Some(round(d.idle, 6)), gpu.Some(round(d.longest, 6))
	}
	if !d.lastActive.IsZero() {
		out.LastActive = gpu.Some(d.lastActive)
	}
	return out
}
