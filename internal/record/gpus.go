package record

import (
	"math"
	"slices"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
)

// Bounds on what a record carries, so that no job can make it large.
const (
	maxProcesses = 16
	maxFaults    = 16
	maxEvents    = 100
	maxSeries    = 1000
)

// seriesKept are the metrics whose thinned series go into the record.
var seriesKept = []gpu.Metric{gpu.Utilization, gpu.SMActive, gpu.TensorActive, gpu.DRAMActive, gpu.MemoryUsed, gpu.Power}

// record makes the GPU's part of the record.
func (d *device) record(r Record, sums *runs.Sums) GPU {
	g := GPU{
		Index: d.id.Index, Minor: d.id.Minor, UUID: Clean(d.id.UUID), PCI: Clean(d.id.PCI), Model: Clean(d.id.Name), Serial: d.id.Serial,
		Shared: d.shared, Values: map[string]Value{}, Quality: d.quality(),
	}
	if d.mig != nil {
		g.MIG = &MIG{GI: d.mig.GI, CI: d.mig.CI, UUID: Clean(d.mig.UUID), Profile: Clean(d.mig.Profile)}
	}
	if d.sums != nil {
		d.tail = tail(d.sums, sums)
	}
	for _, f := range Fields() {
		g.Values[f.Field] = f.round(f.read(d, f.Stat))
	}
	if d.sums == nil {
		return g
	}
	for _, proc := range d.sums.Processes[:min(len(d.sums.Processes), maxProcesses)] {
		g.Processes = append(g.Processes, Process{PID: proc.PID, Name: Clean(proc.Name), Memory: proc.Memory})
	}
	g.Series = series(d.sums.Series, offset(r, sums))
	return g
}

func (d *device) quality() GPUQuality {
	q := GPUQuality{CounterResets: d.reset}
	for _, p := range []*runs.DevicePoint{d.start, d.end} {
		if p != nil {
			q.Faults = append(q.Faults, p.Faults...)
		}
	}
	if d.sums != nil {
		q.Faults = append(q.Faults, d.sums.Faults...)
		q.Covered = gpu.Some(max(d.sums.Covered, 0))
		q.Gaps, q.Resets = gpu.Some(d.sums.Gaps), gpu.Some(d.sums.Resets)
		if d.elapsed > 0 {
			q.Coverage = gpu.Some(min(max(d.sums.Covered, 0)/d.elapsed, 1))
		}
	}
	q.Faults = slices.Clip(q.Faults[:min(len(q.Faults), maxFaults)])
	for i := range q.Faults {
		q.Faults[i].Call, q.Faults[i].Text = Clean(q.Faults[i].Call), Clean(q.Faults[i].Text)
	}
	return q
}

// tail is the time from the last activity to the last sample; all of it where
// there was none.
func tail(d *runs.DeviceSums, sums *runs.Sums) gpu.Opt[float64] {
	if last, ok := d.LastActive.Get(); ok {
		return gpu.Some(max(sums.To.Sub(last).Seconds(), 0))
	}
	if d.Idle.IsSet() {
		return gpu.Some(d.Covered)
	}
	return gpu.Opt[float64]{}
}

// offset is how long after the record's start the samples' clock began.
func offset(r Record, sums *runs.Sums) float64 {
	start, ok := r.Start.Get()
	if !ok || sums.From.IsZero() {
		return 0
	}
	return max(sums.From.Sub(start).Seconds(), 0)
}

func series(in map[gpu.Metric][]runs.Sample, after float64) map[gpu.Metric][]runs.Sample {
	out := map[gpu.Metric][]runs.Sample{}
	for _, m := range seriesKept {
		for _, s := range in[m][:min(len(in[m]), maxSeries)] {
			out[m] = append(out[m], runs.Sample{T: decimals(s.T+after, 3), V: decimals(s.V, 4)})
		}
	}
	return out
}

// round drops digits that mean nothing: parts of a byte, and all beyond the
// sixth decimal.
func (f Field) round(v Value) Value {
	x, ok := v.Value.Get()
	switch {
	case ok && f.Unit.Integer():
		v.Value = gpu.Some(math.Round(x))
	case ok:
		v.Value = gpu.Some(decimals(x, 6))
	}
	return v
}

func decimals(v float64, n int) float64 {
	p := math.Pow10(n)
	return math.Round(v*p) / p
}
