package sampler

import (
	"cmp"
	"math"
	"slices"
)

// maxCentroids bounds a sketch; a merged centroid stands for at most 1/128 of
// the time, so that a quantile's rank is right within 0.8 %.
const maxCentroids = 256

// centroid is a value and the seconds that it stands for.
type centroid struct{ value, weight float64 }

// sketch estimates quantiles weighted by time in bounded memory. Up to
// maxCentroids values it is exact. The zero value is ready.
type sketch struct {
	points []centroid
	total  float64
}

func (s *sketch) add(value, weight float64) {
	if len(s.points) == maxCentroids {
		s.compress()
	}
	s.points = append(s.points, centroid{value, weight})
	s.total += weight
}

// compress merges neighbours, in order of value, as long as the sum is light.
func (s *sketch) compress() {
	s.sort()
	limit := s.total / (maxCentroids / 2)
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
		seen += c.weight
		if seen >= want {
			return c.value
		}
	}
	return s.points[len(s.points)-1].value
}
