package sampler

import (
	"math"

	"gpuhooks/internal/runs"
)

// stat accumulates one metric of one device of a run.
type stat struct {
	closed   mean // before the last reset, where it counts no more
	open     mean
	min, max float64
	samples  int
	sketch   sketch
	series   series
}

// mean is a sum weighted by time.
type mean struct{ sum, seconds float64 }

// newStat begins a metric; course is the most points of its course, 0 for none.
func newStat(width float64, course int) *stat {
	s := &stat{min: math.Inf(1), max: math.Inf(-1), series: series{limit: course, width: width}}
	s.sketch.limit = coarseSketch
	if course > 0 {
		s.sketch.limit = fineSketch
	}
	return s
}

func (s *stat) add(end, seconds, value float64) {
	s.open.sum += value * seconds
	s.open.seconds += seconds
	s.min, s.max = min(s.min, value), max(s.max, value)
	s.samples++
	s.sketch.add(value, seconds)
	s.series.add(end, seconds, value)
}

// exact replaces the mean since the last break by one that was measured over
// all of it.
func (s *stat) exact(value, seconds float64) { s.open = mean{value * seconds, seconds} }

// end closes what exact may replace.
func (s *stat) end() {
	s.closed.sum += s.open.sum
	s.closed.seconds += s.open.seconds
	s.open = mean{}
}

func (s *stat) stat() runs.Stat {
	seconds := s.closed.seconds + s.open.seconds
	out := runs.Stat{Min: s.min, Max: s.max, Seconds: round(seconds, 6), Samples: s.samples}
	if seconds > 0 {
		out.Mean = (s.closed.sum + s.open.sum) / seconds
	}
	within := func(q float64) float64 { return min(max(s.sketch.quantile(q), s.min), s.max) }
	out.P05, out.P50, out.P95 = within(0.05), within(0.50), within(0.95)
	return out
}

// resume continues a stat that another sampler left. Of its distribution only
// three points are known.
func (s *stat) resume(old runs.Stat, course []runs.Sample) {
	if old.Samples == 0 || old.Seconds <= 0 {
		return
	}
	s.closed = mean{old.Mean * old.Seconds, old.Seconds}
	s.min, s.max, s.samples = old.Min, old.Max, old.Samples
	s.sketch.add(old.P05, old.Seconds*0.1)
	s.sketch.add(old.P50, old.Seconds*0.8)
	s.sketch.add(old.P95, old.Seconds*0.1)
	from := 0.0
	for _, p := range course {
		if p.T > from {
			s.series.width = max(s.series.width, p.T-from)
			s.series.points = append(s.series.points, span{p.T, p.T - from, p.V})
			from = p.T
		}
	}
}
