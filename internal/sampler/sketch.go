package sampler

import (
	"cmp"
	"math"
	"slices"
)

// Sketches are bounded: a merged centroid stands for at most 2/limit of the
// time, so that a quantile's rank is right within 0.8 % for the metrics that
// are looked at first, and 1.6 % for the others.
const (
	fineSketch   = 256
	coarseSketch = 128
)

// centroid is a value and the seconds that it stands for. There are thousands,
// so they are small: seven digits.
type centroid struct{ value, weight float32 }

// sketch estimates quantiles weighted by time in bounded memory. Up to limit
// values it forgets none.
type sketch struct {
	limit  int
	points []centroid
	total  float64
}

func (s *sketch) add(value, weight float64) {
	if len(s.points) == s.limit {
		s.compress()
	}
	s.points = append(s.points, centroid{float32(value), float32(weight)})
	s.total += weight
}

// compress merges neighbours, in order of value, as long as the sum is light.
func (s *sketch) compress() {
	s.sort()
	limit := float32(s.total) / float32(s.limit/2)
	out := s.points[:1]
	for _, c := range s.points[1:] {
		last := &out[len(out)-1]
		if sum := last.weight + c.weight; sum <= limit {
			last.value += (c.value - last.value) * c.weight / sum
			last.weight = sum
		} else {
			out = append(out, c)
		}
	}
	s.points = out
}

func (s *sketch) sort() {
	slices.SortFunc(s.points, func(a, b centroid) int { return cmp.Compare(a.value, b.value) })
}

// quantile returns the value below which the share q of the time lies; NaN
// where nothing was added.
func (s *sketch) quantile(q float64) float64 {
	if len(s.points) == 0 {
		return math.NaN()
	}
	s.sort()
	want, seen := q*s.total, 0.0
	for _, c := range s.points {
		seen += float64(c.weight)
		if seen >= want*(1-1e-6) {
			return significant(float64(c.value))
		}
	}
	return significant(float64(s.points[len(s.points)-1].value))
}
