package record

import (
	"math"
	"slices"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
)

// reader takes one statistic of a quantity out of what is known of a device. The
// functions that make readers are not inlined: each row of the table would carry
// a copy, which made a hook 2 % larger.
type reader func(d *device, s Stat) Value

func known(v float64, source gpu.Source, flags ...Flag) Value {
	return Value{Value: gpu.Some(v), Source: source, Flags: flags}
}

func unknown(why Why) Value { return Value{Source: gpu.SourceNone, Why: why} }

// maxWatts is above every card; an energy delta beyond it is garbage.
const maxWatts = 5000

// sampled reads what the sampler accumulated.
//
//go:noinline
func sampled(m gpu.Metric) reader {
	return func(d *device, s Stat) Value {
		st, why := d.stat(m)
		if why != "" {
			return unknown(why)
		}
		v, ok := map[Stat]float64{Mean: st.Mean, Max: st.Max, Min: st.Min, P05: st.P05, P50: st.P50, P95: st.P95}[s]
		if ratio := activity(m) || m == gpu.Utilization || m == gpu.MemUtilization; ok && ratio {
			v, ok = plausibleRatio(v)
		}
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) || (v < 0 && m != gpu.Temperature && m != gpu.MemTemperature && m != gpu.TempMargin) {
			return unknown(WhyImplausible)
		}
		if d.shared {
			return known(v, d.source(m), SharedGPU)
		}
		return known(v, d.source(m))
	}
}

// cycles reads a mean from the card's cumulative cycles, which miss nothing of
// the run, and everything else from the sampler.
//
//go:noinline
func cycles(k gpu.Counter, m gpu.Metric) reader {
	fromSamples := sampled(m)
	return func(d *device, s Stat) Value {
		if s != Mean {
			return fromSamples(d, s)
		}
		active, flags, why := d.counter(k, false)
		all, _, whyAll := d.counter(gpu.SMCyclesElapsed, false)
		if why == "" && whyAll == "" && all > 0 {
			if v, ok := plausibleRatio(active / all); ok && !slices.Contains(flags, LowerBound) {
				return known(v, gpu.SourceCounter, flags...)
			}
		}
		return fromSamples(d, s)
	}
}

// count reads a plain counter of the card.
//
//go:noinline
func count(k gpu.Counter) reader {
	return func(d *device, _ Stat) Value {
		v, flags, why := d.counter(k, true)
		if why != "" {
			return unknown(why)
		}
		return known(v, gpu.SourceCounter, flags...)
	}
}

// throttle reads nanoseconds as seconds. No clock runs longer than the run did.
//
//go:noinline
func throttle(k gpu.Counter) reader {
	return func(d *device, _ Stat) Value {
		ns, flags, why := d.counter(k, true)
		v := ns / 1e9
		switch {
		case why != "":
			return unknown(why)
		case d.elapsed > 0 && v > d.elapsed*1.1+2:
			return unknown(WhyImplausible)
		case d.elapsed > 0:
			v = min(v, d.elapsed)
		}
		return known(v, gpu.SourceCounter, flags...)
	}
}

// errors2 reads ECC errors of one kind and place, which the driver counts twice:
// since its load, and over the card's life. The two may lag behind each other;
// the larger delta is the truth. It is exact as soon as one that was not reset
// is as large.
//
//go:noinline
func errors2(volatile, aggregate gpu.Counter) reader {
	return func(d *device, _ Stat) Value {
		best := count(volatile)(d, Total)
		other := count(aggregate)(d, Total)
		b, okB := best.Value.Get()
		o, okO := other.Value.Get()
		if okO && (!okB || o > b || (o == b && !other.Has(LowerBound))) {
			return other
		}
		return best
	}
}

// moved reads bytes from a counter, else integrates the sampled rate.
//
//go:noinline
func moved(k gpu.Counter, rate gpu.Metric) reader {
	return func(d *device, _ Stat) Value {
		v, flags, why := d.counter(k, false)
		if why == "" {
			return known(v, gpu.SourceCounter, flags...)
		}
		st, whyNot := d.stat(rate)
		if whyNot != "" || !(st.Mean >= 0) || math.IsInf(st.Mean, 0) {
			return unknown(why)
		}
		st.Seconds = d.within(st.Seconds)
		return known(math.Round(st.Mean*st.Seconds), d.source(rate), d.integrated(st.Seconds)...)
	}
}

// within is a time of samples, of which there cannot be more than the run was long.
func (d *device) within(seconds float64) float64 {
	if d.elapsed > 0 {
		return min(seconds, d.elapsed)
	}
	return seconds
}

// integrated are the flags of an integral over that many seconds of samples.
func (d *device) integrated(seconds float64) []Flag {
	flags := []Flag{Integrated}
	if seconds < 0.95*d.elapsed {
		flags = append(flags, LowerBound)
	}
	if d.shared {
		flags = append(flags, SharedGPU)
	}
	return flags
}

// energy reads the card's counter, else integrates the sampled power. Of a MIG
// instance nobody measures it: its share of the card's is an estimate.
func energy(d *device, _ Stat) Value {
	v := cardEnergy(d)
	if d.mig == nil {
		return v
	}
	part, ok := share(d.mig.Profile, d.id.Name)
	joules, isKnown := v.Value.Get()
	switch {
	case !isKnown:
		return v
	case !ok:
		return unknown(WhyMIG)
	}
	var flags []Flag
	for _, f := range v.Flags {
		if f != WholeCard {
			flags = append(flags, f)
		}
	}
	return known(joules*part, v.Source, append(flags, Estimated)...)
}

func cardEnergy(d *device) Value {
	mj, flags, why := d.counter(gpu.EnergyMillijoules, true)
	joules := mj / 1000
	switch {
	case why == "" && d.elapsed > 0 && joules > maxWatts*(d.elapsed+1):
		why = WhyImplausible
	case why == "" && !slices.Contains(flags, LowerBound):
		return known(joules, gpu.SourceCounter, flags...)
	}
	st, whyNot := d.stat(gpu.Power)
	st.Seconds = d.within(st.Seconds)
	integral := st.Mean * st.Seconds
	switch {
	case whyNot == "" && integral >= 0 && !math.IsInf(integral, 0) && (why != "" || integral > joules):
		return known(integral, gpu.SourceNVML, d.integrated(st.Seconds)...)
	case why != "":
		return unknown(why)
	}
	return known(joules, gpu.SourceCounter, flags...)
}

// memoryTotal is the card's, or what a MIG instance's profile promises: the
// counters' points know the card's memory only.
func memoryTotal(d *device, _ Stat) Value {
	if d.mig != nil {
		if v, ok := profileMemory(d.mig.Profile); ok {
			return known(v, gpu.SourceNVML, Estimated)
		}
		return unknown(WhyMIG)
	}
	for _, p := range []*runs.DevicePoint{d.start, d.end} {
		if p == nil {
			continue
		}
		if v, ok := p.Memory.Get(); ok && v > 0 {
			return known(float64(v), gpu.SourceNVML)
		}
	}
	return unknown(WhyNotSupported)
}

func memoryBefore(d *device, _ Stat) Value {
	if d.start == nil {
		return unknown(WhyNoStart)
	}
	if v, ok := d.start.MemoryUsed.Get(); ok {
		return known(float64(v), gpu.SourceNVML)
	}
	return unknown(WhyNotSupported)
}

func idle(d *device, _ Stat) Value {
	if d.sums == nil {
		return unknown(WhyNoSamples)
	}
	return d.idleTime(d.sums.Idle)
}

func longestIdle(d *device, _ Stat) Value {
	if d.sums == nil {
		return unknown(WhyNoSamples)
	}
	return d.idleTime(d.sums.LongestIdle)
}

func idleTail(d *device, _ Stat) Value {
	if d.sums == nil {
		return unknown(WhyNoSamples)
	}
	return d.idleTime(d.tail)
}

// idleTime is a time without activity, of the source that showed the activity.
func (d *device) idleTime(v gpu.Opt[float64]) Value {
	s, ok := v.Get()
	switch {
	case d.sums.Covered <= 0:
		return unknown(WhyNoSamples)
	case !ok:
		return unknown(WhyNotSupported)
	case !(s >= 0):
		return unknown(WhyImplausible)
	case d.elapsed > 0:
		s = min(s, d.elapsed)
	}
	source := gpu.SourceNVML
	if _, why := d.stat(gpu.SMActive); why == "" {
		source = d.sums.Source
	}
	return known(s, source)
}
