package sampler

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func newDevice() *Device {
	return New("GPU-1", Options{Start: start, Tick: 5 * time.Second, Series: 240})
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestMeansAreWeightedByTime(t *testing.T) {
	d := newDevice()
	d.Add(Interval{at(0), at(1), gpu.Readings{gpu.SMActive: 0, gpu.Power: 100}})
	d.Add(Interval{at(1), at(5), gpu.Readings{gpu.SMActive: 0.8, gpu.Power: 600}})
	d.Add(Interval{at(5), at(10), gpu.Readings{gpu.SMActive: 0.4}})
	s := d.Sums()
	sm := s.Stats[gpu.SMActive]
	near(t, "mean", sm.Mean, (0.8*4+0.4*5)/10, 1e-12)
	near(t, "min", sm.Min, 0, 0)
	near(t, "max", sm.Max, 0.8, 0)
	near(t, "p50", sm.P50, 0.4, 0)
	near(t, "p95", sm.P95, 0.8, 0)
	near(t, "power", s.Stats[gpu.Power].Mean, (100+600*4)/5.0, 1e-9)
	near(t, "power seconds", s.Stats[gpu.Power].Seconds, 5, 1e-9)
	near(t, "covered", s.Covered, 10, 1e-9)
	near(t, "idle", s.Idle.Or(-1), 1, 1e-9)
	if s.Source != gpu.SourceGPM || s.Gaps != 0 {
		t.Errorf("source %s, gaps %d", s.Source, s.Gaps)
	}
	if last, _ := s.LastActive.Get(); !last.Equal(at(10)) {
		t.Errorf("last active %v", last)
	}
}

func TestIdleByUtilisationWhereThereIsNoGPM(t *testing.T) {
	d := newDevice()
	for i := range 10 {
		v := 0.0
		if i == 3 {
			v = 1
		}
		d.Add(Interval{at(float64(5 * i)), at(float64(5*i + 5)), gpu.Readings{gpu.Utilization: v}})
	}
	s := d.Sums()
	near(t, "idle", s.Idle.Or(-1), 45, 1e-9)
	near(t, "longest", s.LongestIdle.Or(-1), 30, 1e-9)
	if s.Source != gpu.SourceNVML {
		t.Errorf("source %s", s.Source)
	}
}

func TestUnknownActivityIsNotIdle(t *testing.T) {
	d := newDevice()
	d.Add(Interval{at(0), at(5), gpu.Readings{gpu.MemoryUsed: 1e9}})
	if s := d.Sums(); s.Idle.IsSet() || s.LongestIdle.IsSet() || s.Source != gpu.SourceNone {
		t.Errorf("idle %v, source %s", s.Idle, s.Source)
	}
}

func TestExactMeanReplacesTheSumOfPieces(t *testing.T) {
	d := newDevice()
	d.Add(Interval{at(0), at(5), gpu.Readings{gpu.SMActive: 0.79, gpu.Power: 300}})
	d.Exact(gpu.Readings{gpu.SMActive: 0.8}, 5)
	near(t, "mean", d.Sums().Stats[gpu.SMActive].Mean, 0.8, 1e-12)
	near(t, "power", d.Sums().Stats[gpu.Power].Mean, 300, 1e-12)

	d.Reset() // what was before is closed
	d.Add(Interval{at(5), at(10), gpu.Readings{gpu.SMActive: 0.1}})
	d.Exact(gpu.Readings{gpu.SMActive: 0.2}, 5)
	s := d.Sums()
	near(t, "mean over both", s.Stats[gpu.SMActive].Mean, 0.5, 1e-12)
	if s.Resets != 1 {
		t.Errorf("resets %d", s.Resets)
	}
}

func TestGaps(t *testing.T) {
	d := newDevice()
	d.Add(Interval{at(0), at(15), gpu.Readings{gpu.SMActive: 1}})
	d.Add(Interval{at(15), at(30.1), gpu.Readings{gpu.SMActive: 1}})
	d.Gap()
	if got := d.Sums().Gaps; got != 2 {
		t.Errorf("gaps %d, want 2", got)
	}
}

// A day at one sample a second stays bounded and true.
func TestLongRunsStayBoundedAndTrue(t *testing.T) {
	d := New("GPU-1", Options{Start: start, Tick: time.Second, Series: 240})
	r := rand.New(rand.NewPCG(1, 2))
	const n = 86400
	sum := 0.0
	for i := range n {
		v := r.Float64()
		sum += v
		d.Add(Interval{at(float64(i)), at(float64(i + 1)), gpu.Readings{gpu.SMActive: v, gpu.Temperature: v}})
	}
	s := d.Sums()
	sm := s.Stats[gpu.SMActive]
	near(t, "mean", sm.Mean, sum/n, 1e-9)
	near(t, "p05", sm.P05, 0.05, 0.012)
	near(t, "p50", sm.P50, 0.50, 0.012)
	near(t, "p95", sm.P95, 0.95, 0.012)
	points := s.Series[gpu.SMActive]
	if len(points) < 120 || len(points) > 240 {
		t.Errorf("%d points", len(points))
	}
	near(t, "the course ends with the run", points[len(points)-1].T, n, 0)
	if s.Series[gpu.Temperature] != nil {
		t.Error("a course of a metric that has none")
	}
	if got := len(d.stats[gpu.SMActive].sketch.points); got > fineSketch {
		t.Errorf("%d centroids", got)
	}
}

func TestResumeGoesOn(t *testing.T) {
	d := newDevice()
	for i := range 20 {
		d.Add(Interval{at(float64(5 * i)), at(float64(5*i + 5)), gpu.Readings{gpu.SMActive: 0.5}})
	}
	d.Saw([]gpu.Process{{PID: 7, Start: gpu.Some(uint64(9)), Memory: gpu.Some(uint64(100))}})
	e := Resume(d.Sums(), d.o)
	e.Gap()
	for i := 30; i < 50; i++ {
		e.Add(Interval{at(float64(5 * i)), at(float64(5*i + 5)), gpu.Readings{gpu.SMActive: 0.9}})
	}
	e.Exact(gpu.Readings{gpu.SMActive: 0.9}, 100)
	e.Saw([]gpu.Process{{PID: 7, Start: gpu.Some(uint64(9)), Memory: gpu.Some(uint64(300))}})
	s := e.Sums()
	sm := s.Stats[gpu.SMActive]
	near(t, "mean", sm.Mean, 0.7, 1e-9)
	near(t, "min", sm.Min, 0.5, 0)
	near(t, "max", sm.Max, 0.9, 0)
	near(t, "covered", s.Covered, 200, 1e-9)
	if s.Gaps != 1 || sm.Samples != 40 || len(s.Series[gpu.SMActive]) != 40 {
		t.Errorf("gaps %d, samples %d, points %d", s.Gaps, sm.Samples, len(s.Series[gpu.SMActive]))
	}
	if len(s.Processes) != 1 || s.Processes[0].Memory.Or(0) != 300 {
		t.Errorf("processes %v", s.Processes)
	}
}

func TestSignificant(t *testing.T) {
	for _, c := range []struct{ in, want float64 }{
		{0, 0}, {0.123456789, 0.123457}, {85520809984, 85520800000}, {72, 72}, {1e-9, 1e-9},
	} {
		near(t, "significant", significant(c.in), c.want, c.want*1e-12)
	}
}

func BenchmarkAdd(b *testing.B) {
	d := newDevice()
	m := gpu.Readings{}
	for _, k := range []gpu.Metric{gpu.SMActive, gpu.SMOccupancy, gpu.TensorActive, gpu.DRAMActive, gpu.FP16Active, gpu.FP32Active,
		gpu.FP64Active, gpu.IntActive, gpu.Power, gpu.Temperature, gpu.MemoryUsed, gpu.Utilization} {
		m[k] = 0.5
	}
	b.ReportAllocs()
	for i := range b.N {
		d.Add(Interval{at(float64(5 * i)), at(float64(5*i + 5)), m})
	}
}
