package sampler

import (
	"math"

	"gpuhooks/internal/runs"
)

// series keeps a course of bounded length: when it is full, neighbours are
// merged and each point stands for twice the time.
type series struct {
	limit  int
	width  float64 // seconds that a point may stand for
	points []span
}

// span is the mean over the seconds that end at end.
type span struct{ end, seconds, value float64 }

func (s *series) add(end, seconds, value float64) {
	if s.limit < 2 {
		return
	}
	if n := len(s.points); n > 0 && s.points[n-1].seconds+seconds <= s.width*1.01 {
		s.points[n-1].join(span{end, seconds, value})
		return
	}
	if len(s.points) >= s.limit {
		s.halve()
	}
	s.points = append(s.points, span{end, seconds, value})
}

func (s *series) halve() {
	n := 0
	for i := 0; i < len(s.points); i += 2 {
		p := s.points[i]
		if i+1 < len(s.points) {
			p.join(s.points[i+1])
		}
		s.points[n] = p
		n++
	}
	s.points = s.points[:n]
	s.width *= 2
}

func (p *span) join(next span) {
	sum := p.seconds + next.seconds
	p.value += (next.value - p.value) * next.seconds / sum
	p.end, p.seconds = next.end, sum
}

func (s *series) samples() []runs.Sample {
	out := make([]runs.Sample, len(s.points))
	for i, p := range s.points {
		out[i] = runs.Sample{T: round(p.end, 3), V: significant(p.value)}
	}
	return out
}

func round(v float64, digits int) float64 {
	f := math.Pow(10, float64(digits))
	return math.Round(v*f) / f
}

// significant keeps six digits: more is noise, and makes the file large.
func significant(v float64) float64 {
	if v == 0 {
		return 0
	}
	digits := 6 - int(math.Ceil(math.Log10(math.Abs(v))))
	if digits < 0 {
		f := math.Pow(10, float64(-digits))
		return math.Round(v/f) * f
	}
	return round(v, digits)
}
