//go:build cgo

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/nvml"
)

// idle measures a while without our load; somebody else's may be there.
func (k *asker) idle() { k.watch("idle") }

// load waits until the script's load is on the GPU and measures a window of it.
func (k *asker) load() {
	waited := time.Now()
	if !k.busy(waited.Add(30 * time.Second)) {
		k.fail("load", "it was started, but GPU %d stayed idle for 30 s", k.o.gpu)
		return
	}
	took := time.Since(waited)
	k.dev.UtilizationRing()
	time.Sleep(min(2*time.Second, k.o.window/4)) // out of the ramp
	var p nvml.Point
	k.dev.Read(&p, nil, nvml.Usual)
	values := map[string]any{"memory_used_bytes": p.Readings[gpu.MemoryUsed]}
	text := []string{fmt.Sprintf("seen after %.0f s", took.Seconds())}
	for _, m := range []struct {
		metric gpu.Metric
		format string
	}{{gpu.Utilization, "GPU-Util %.2f"}, {gpu.Power, "%.0f W"}, {gpu.SMClock, "%.0f MHz"}, {gpu.Temperature, "%.0f °C"}} {
		if v, ok := p.Readings[m.metric]; ok {
			values[string(m.metric)] = v
			text = append(text, fmt.Sprintf(m.format, v))
		}
	}
	k.say("load", values, "%s", strings.Join(text, ", "))
	k.watch("load")
	k.sayRing("ring-load")
}

// busy waits until the GPU is at work.
func (k *asker) busy(until time.Time) bool {
	a, b := k.samples()
	defer func() {
		k.lib.FreeGPMSample(a)
		k.lib.FreeGPMSample(b)
	}()
	var p nvml.Point
	k.dev.Read(&p, a, nvml.Usual)
	for time.Now().Before(until) {
		time.Sleep(250 * time.Millisecond)
		k.dev.Read(&p, b, nvml.Usual)
		if p.Readings[gpu.Utilization] > 0.05 {
			return true
		}
		if r := (gpu.Readings{}); p.GPM && k.lib.GPMMeans(a, b, r) == nil && r[gpu.SMActive] > 0.05 {
			return true
		}
		a, b = b, a
	}
	return false
}

// energy measures how often the counter and the power reading change.
func (k *asker) energy() {
	k.sayRefresh("energy-refresh", "mJ", k.dev.Energy)
	k.sayRefresh("power-refresh", "mW", k.dev.PowerNow)
}

// sayRefresh looks at a value again and again and measures the time between changes.
func (k *asker) sayRefresh(id, unit string, read func() (uint64, bool)) {
	last, ok := read()
	if !ok {
		k.lacks(id, "not supported")
		return
	}
	var between []time.Duration
	var steps []uint64
	looks := 0
	start := time.Now()
	changed := time.Time{}
	for time.Since(start) < min(5*time.Second, k.o.window) {
		time.Sleep(500 * time.Microsecond)
		v, ok := read()
		looks++
		if !ok || v == last {
			continue
		}
		now := time.Now()
		if !changed.IsZero() {
			between = append(between, now.Sub(changed))
			steps = append(steps, max(v, last)-min(v, last))
		}
		changed, last = now, v
	}
	look := time.Since(start) / time.Duration(max(looks, 1))
	values := map[string]any{"changes": len(between), "look_microseconds": micros(look)}
	if len(between) == 0 {
		k.say(id, values, "no change in %.0f s of looking every %.1f ms", time.Since(start).Seconds(), micros(look)/1000)
		return
	}
	slices.Sort(steps)
	step := steps[len(steps)/2]
	values["interval_p50_milliseconds"] = round(micros(quantile(between, 0.5)) / 1000)
	values["interval_p99_milliseconds"] = round(micros(quantile(between, 0.99)) / 1000)
	values["step_p50_"+unit] = step
	k.say(id, values, "every %.1f ms (p99 %.1f) by %d %s, looking every %.1f ms",
		micros(quantile(between, 0.5))/1000, micros(quantile(between, 0.99))/1000, step, unit, micros(look)/1000)
}

func (k *asker) ringIdle() {
	// The driver may fill its ring only while somebody asks.
	k.dev.UtilizationRing()
	time.Sleep(min(12*time.Second, k.o.window))
	k.sayRing("ring-idle")
}

// sayRing measures the driver's utilisation ring: how many entries, how far apart.
func (k *asker) sayRing(id string) {
	ring, result := k.dev.UtilizationRing()
	if result != nvml.Success {
		k.lacks(id, "answers %s", result)
		return
	}
	if len(ring) < 2 {
		k.say(id, map[string]any{"entries": len(ring)}, "%d entries", len(ring))
		return
	}
	var between []time.Duration
	sum := 0.0
	for i := range ring {
		sum += ring[i].Ratio
		if i > 0 {
			between = append(between, ring[i].Time.Sub(ring[i-1].Time))
		}
	}
	span := ring[len(ring)-1].Time.Sub(ring[0].Time)
	age := time.Since(ring[len(ring)-1].Time)
	k.say(id, map[string]any{
		"entries": len(ring), "interval_p50_milliseconds": round(micros(quantile(between, 0.5)) / 1000),
		"span_seconds": round(span.Seconds()), "newest_age_seconds": round(age.Seconds()), "mean_ratio": round(sum / float64(len(ring))),
	}, "%d entries, %.0f ms apart, over %.1f s, newest %.2f s old, mean %.2f",
		len(ring), micros(quantile(between, 0.5))/1000, span.Seconds(), age.Seconds(), sum/float64(len(ring)))
}

// client compares the power drawn while nobody here holds NVML open with that
// while it is open and sampled each second.
func (k *asker) client() {
	half := max(k.o.window/4, time.Second)
	before, ok := k.dev.Energy()
	if !ok {
		k.lacks("client", "no energy counter")
		return
	}
	t0 := time.Now()
	k.lib.Close()
	time.Sleep(half)
	if err := k.open(); err != nil {
		k.fail("client", "opened again: %v", err)
		return
	}
	opened := time.Since(t0) - half
	middle, ok1 := k.dev.Energy()
	t1 := time.Now()
	s, _ := k.lib.NewGPMSample()
	defer func() { k.lib.FreeGPMSample(s) }()
	var p nvml.Point
	for time.Since(t1) < half {
		k.dev.Read(&p, s, nvml.Usual)
		time.Sleep(min(time.Second, half/4))
	}
	after, ok2 := k.dev.Energy()
	t2 := time.Now()
	switch {
	case !ok1 || !ok2:
		k.fail("client", "the energy counter was lost while NVML was closed")
	case middle < before || after < middle:
		k.say("client", map[string]any{"counter_restarted": true, "open_milliseconds": round(micros(opened) / 1000)},
			"the energy counter BEGAN AGAIN when the last client left: keep persistence mode on, or NVML open")
	default:
		closed, open := watts(before, middle, t1.Sub(t0)), watts(middle, after, t2.Sub(t1))
		k.say("client", map[string]any{
			"counter_restarted": false, "closed_watts": round(closed), "open_watts": round(open), "open_milliseconds": round(micros(opened) / 1000),
		}, "%.1f W closed, %.1f W open and sampled; opening takes %.0f ms", closed, open, micros(opened)/1000)
	}
}

func watts(from, to uint64, d time.Duration) float64 { return float64(to-from) / 1000 / d.Seconds() }
