package record

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
)

// device is all that is known of one GPU or MIG instance of the run.
type device struct {
	id         gpu.Identity
	mig        *gpu.Instance     // nil: a whole GPU
	start, end *runs.DevicePoint // nil: not read
	sums       *runs.DeviceSums  // nil: not sampled
	elapsed    float64           // seconds; 0: unknown
	shared     bool
	delta      gpu.Counters // of the card
	instance   gpu.Counters // of the MIG instance
	reset      []gpu.Counter
	tail       gpu.Opt[float64] // seconds between the last activity and the last sample
}

// key is the UUID under which the sampler keeps the device: the instance's,
// else the card's.
func (d *device) key() string {
	if d.mig != nil {
		return d.mig.UUID
	}
	return d.id.UUID
}

// place identifies the device: the card, by its address where nobody knows the
// UUID, and for MIG the instance on it, whose UUID not every source knows.
func (d *device) place() string {
	card := cmp.Or(d.id.UUID, d.id.PCI)
	if d.mig != nil {
		return fmt.Sprintf("%s/%d/%d", card, d.mig.GI, d.mig.CI)
	}
	return card
}

// measure fills the differences.
func (d *device) measure(elapsed float64, reloaded bool) {
	d.elapsed = elapsed
	if d.start == nil || d.end == nil {
		return
	}
	var more []gpu.Counter
	d.delta, d.reset = difference(d.start.Counters, d.end.Counters, reloaded)
	d.instance, more = difference(instanceCounters(d.start), instanceCounters(d.end), reloaded)
	d.reset = append(d.reset, more...)
	slices.Sort(d.reset)
	d.reset = slices.Compact(d.reset)
}

// persistent are the counters that outlive a reload of the driver: they live in
// the card's InfoROM.
var persistent = []gpu.Counter{
	gpu.ECCAggCorrDRAM, gpu.ECCAggUncorrDRAM, gpu.ECCAggCorrSRAM, gpu.ECCAggUncorrSRAM,
	gpu.RemapCorrected, gpu.RemapUncorrected,
}

// difference is gpu.Delta that also knows of a driver load in between: then
// every counter that the driver keeps began anew, whether or not it has already
// overtaken its old value.
func difference(start, end gpu.Counters, reloaded bool) (gpu.Counters, []gpu.Counter) {
	if !reloaded {
		return gpu.Delta(start, end)
	}
	from := gpu.Counters{}
	d, reset := gpu.Counters{}, []gpu.Counter{}
	for k, v := range start {
		if slices.Contains(persistent, k) {
			from[k] = v
			continue
		}
		if e, ok := end[k]; ok {
			d[k] = e
			reset = append(reset, k)
		}
	}
	kept, more := gpu.Delta(from, end)
	for k, v := range kept {
		d[k] = v
	}
	reset = append(reset, more...)
	slices.Sort(reset)
	return d, reset
}

// counter returns the delta of a counter and what restricts it. For a MIG
// instance its own counter comes first; the card's stands in for it only where
// ofCard allows.
func (d *device) counter(k gpu.Counter, ofCard bool) (float64, []Flag, Why) {
	var flags []Flag
	if slices.Contains(d.reset, k) {
		flags = append(flags, LowerBound)
	}
	if d.shared {
		flags = append(flags, SharedGPU)
	}
	if d.mig != nil {
		if v, ok := d.instance[k]; ok {
			return float64(v), flags, ""
		}
		if !ofCard {
			return 0, nil, d.noCounter(WhyMIG)
		}
		flags = append(flags, WholeCard)
	}
	if v, ok := d.delta[k]; ok {
		return float64(v), flags, ""
	}
	return 0, nil, d.noCounter(WhyNotSupported)
}

// noCounter says why there is no delta; otherwise is the answer when both points
// were read.
func (d *device) noCounter(otherwise Why) Why {
	switch {
	case d.start == nil || len(d.start.Counters)+len(instanceCounters(d.start)) == 0:
		return WhyNoStart
	case d.end != nil && gpu.HasFault(d.end.Faults, gpu.FaultLost):
		return WhyLost
	case d.end == nil || len(d.end.Counters)+len(instanceCounters(d.end)) == 0:
		return WhyNoEnd
	}
	return otherwise
}

func instanceCounters(p *runs.DevicePoint) gpu.Counters {
	if p == nil || p.Instance == nil {
		return nil
	}
	return p.Instance.Counters
}

// stat returns the sampler's statistic of a metric, or why there is none.
func (d *device) stat(m gpu.Metric) (runs.Stat, Why) {
	if d.sums == nil {
		return runs.Stat{}, WhyNoSamples
	}
	s, ok := d.sums.Stats[m]
	switch {
	case ok && s.Seconds > 0:
		return s, ""
	case !ok && len(d.sums.Stats) > 0 && d.mig != nil && wholeCardOnly(m):
		return s, WhyMIG
	case !ok && len(d.sums.Stats) > 0 && activity(m) && !d.gpm():
		return s, WhyNoGPM
	case !ok && len(d.sums.Stats) > 0:
		return s, WhyNotSupported
	}
	return s, WhyNoSamples
}

func (d *device) gpm() bool {
	return d.sums.Source == gpu.SourceGPM || d.sums.Source == gpu.SourceDCGM
}

// source says where a sampled metric comes from.
func (d *device) source(m gpu.Metric) gpu.Source {
	if activity(m) {
		return d.sums.Source
	}
	return gpu.SourceNVML
}

// activity says whether a metric needs GPM or DCGM.
func activity(m gpu.Metric) bool {
	switch m {
	case gpu.Utilization, gpu.MemUtilization, gpu.MemoryUsed, gpu.Power, gpu.Temperature,
		gpu.MemTemperature, gpu.TempMargin, gpu.SMClock, gpu.MemClock:
		return false
	}
	return true
}

// wholeCardOnly says whether NVML refuses a metric for a MIG instance.
func wholeCardOnly(m gpu.Metric) bool {
	switch m {
	case gpu.Utilization, gpu.MemUtilization, gpu.Power, gpu.Temperature, gpu.MemTemperature,
		gpu.TempMargin, gpu.SMClock, gpu.MemClock:
		return true
	}
	return false
}

// share returns which share of its card's compute a MIG profile has: "2g.20gb"
// is 2 of 7, "1c.2g.20gb" 1 of 7.
func share(profile, model string) (float64, bool) {
	of := 7.0
	if strings.Contains(model, "A30") || strings.Contains(model, "RTX PRO") {
		of = 4
	}
	first, _, _ := strings.Cut(profile, ".")
	n, err := strconv.Atoi(strings.TrimRight(first, "cg"))
	if err != nil || n < 1 || float64(n) > of {
		return 0, false
	}
	return float64(n) / of, true
}

// plausibleRatio accepts what is within a rounding of 0..1 and refuses the rest.
func plausibleRatio(v float64) (float64, bool) {
	if math.IsNaN(v) || v < 0 || v > 1.02 {
		return 0, false
	}
	return min(v, 1), true
}

// profileMemory is the memory of a MIG profile by its name: "2g.20gb" has
// nominally 20 GiB.
func profileMemory(profile string) (float64, bool) {
	_, size, _ := strings.Cut(profile, ".")
	if _, after, ok := strings.Cut(size, "."); ok { // 1c.2g.20gb
		size = after
	}
	size, _, _ = strings.Cut(size, "+")
	n, err := strconv.Atoi(strings.TrimSuffix(size, "gb"))
	return float64(n) * (1 << 30), err == nil && n > 0
}
