//go:build cgo

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/nvml"
)

// watch measures the GPU for a while and answers with suffix idle or load. What
// GPM says and what the counters say is measured side by side, each for itself:
// one that hangs does not take the other's answers along.
func (k *asker) watch(suffix string) {
	done := make(chan func(), 2)
	go func() {
		w := k.watchGPM(k.o.window)
		done <- func() {
			if suffix == "idle" {
				k.sayResults(w)
			}
			k.sayPairs(w, suffix)
			k.sayTotals(w, suffix)
		}
	}()
	go func() {
		w := k.watchCounters(k.o.window)
		done <- func() {
			k.sayEnergy(w, suffix)
			k.sayThrottle(w, suffix)
		}
	}()
	for range 2 {
		(<-done)()
	}
}

// gpmWindow is one stretch of time as short pairs of GPM samples and as one
// long pair.
type gpmWindow struct {
	seconds   float64              // between the first sample and the last
	pairs     map[string]*pairMean // by metric
	long      []nvml.GPMMetric
	pairCount int
	totals    [2][]nvml.GPMMetric // cumulative metrics at start and end
	results   map[string]int      // how the metrics of the pairs were answered
	faults    map[string]bool
}

// pairMean is a time-weighted mean.
type pairMean struct{ sum, seconds float64 }

func (m *pairMean) value() float64 { return m.sum / m.seconds }

// pairLength is the distance of two samples: a second, less in a short window.
func pairLength(d time.Duration) time.Duration {
	return min(time.Second, max(d/5, 200*time.Millisecond))
}

func (k *asker) watchGPM(d time.Duration) *gpmWindow {
	w := &gpmWindow{pairs: map[string]*pairMean{}, results: map[string]int{}, faults: map[string]bool{}}
	dev, fault := k.lib.Device(k.uuid)
	if fault != nil {
		w.faults[fault.Error()] = true
		return w
	}
	first, ok1 := k.lib.NewGPMSample()
	last, ok2 := k.lib.NewGPMSample()
	spare, ok3 := k.lib.NewGPMSample()
	defer func() {
		for _, s := range []*nvml.GPMSample{first, last, spare} {
			k.lib.FreeGPMSample(s)
		}
	}()
	if !ok1 || !ok2 || !ok3 {
		return w
	}
	for _, s := range []*nvml.GPMSample{first, last} {
		if r := dev.SampleGPM(s); r != nvml.Success {
			w.faults[string(r)] = true
			return w
		}
	}
	w.totals[0] = w.or(k.lib.GPMTotals(first))
	start := time.Now()
	at := start
	for tick := pairLength(d); at.Sub(start) < d; {
		time.Sleep(tick)
		now := time.Now()
		r := dev.SampleGPM(spare)
		if r != nvml.Success {
			w.faults[string(r)] = true
			if now.Sub(start) > d {
				break
			}
			continue
		}
		w.add(w.or(k.lib.GPMMetrics(last, spare)), now.Sub(at).Seconds())
		last, spare, at = spare, last, now
	}
	w.seconds = at.Sub(start).Seconds()
	w.long = w.or(k.lib.GPMMetrics(first, last))
	w.totals[1] = w.or(k.lib.GPMTotals(last))
	return w
}

// or returns the list and notes the fault.
func (w *gpmWindow) or(list []nvml.GPMMetric, fault *gpu.Fault) []nvml.GPMMetric {
	if fault != nil {
		w.faults[fault.Error()] = true
	}
	return list
}

// add adds one short pair.
func (w *gpmWindow) add(list []nvml.GPMMetric, seconds float64) {
	if len(list) == 0 {
		return
	}
	w.pairCount++
	for _, m := range list {
		switch {
		case m.Result != nvml.Success:
			w.results[string(m.Result)]++
			continue
		case math.IsNaN(m.Value):
			w.results["NaN"]++
			continue
		}
		w.results["numbers"]++
		p := w.pairs[m.Name]
		if p == nil {
			p = &pairMean{}
			w.pairs[m.Name] = p
		}
		p.sum += m.Value * seconds
		p.seconds += seconds
	}
}

// sayResults says how the metrics were answered while nothing of ours ran.
func (k *asker) sayResults(w *gpmWindow) {
	if w.pairCount == 0 {
		k.lacks("gpm-idle", "no GPM pairs%s", because(w.faults))
		return
	}
	values := map[string]any{}
	var parts []string
	total := 0
	for _, r := range slices.Sorted(maps.Keys(w.results)) {
		total += w.results[r]
		values[r] = w.results[r]
		parts = append(parts, fmt.Sprintf("%s %d", r, w.results[r]))
	}
	k.say("gpm-idle", values, "of %d values: %s%s", total, strings.Join(parts, ", "), because(w.faults))
}
