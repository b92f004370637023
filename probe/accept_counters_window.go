//go:build cgo

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/nvml"
)

// counterWindow is one stretch of time by the energy counter, the power
// readings and the throttle counters.
type counterWindow struct {
	seconds       float64
	energy, power gpu.Opt[float64] // joules by the counter, and as the integral of power
	energyBack    bool             // the counter went backwards
	throttle      [2]gpu.Counters
	throttleBack  map[string]bool
}

func (k *asker) watchCounters(d time.Duration) *counterWindow {
	w := &counterWindow{throttleBack: map[string]bool{}}
	start := time.Now()
	meter := energyMeter{dev: k.dev}
	meter.read()
	w.throttle[0] = k.dev.Throttle()
	w.throttle[1] = w.throttle[0]
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	compared := start
	for now := range tick.C {
		meter.read()
		over := now.Sub(start) >= d
		if over || now.Sub(compared) >= pairLength(d) {
			next := k.dev.Throttle()
			_, reset := gpu.Delta(w.throttle[1], next)
			for _, c := range reset {
				w.throttleBack[string(c)] = true
			}
			w.throttle[1], compared = next, now
		}
		if over {
			break
		}
	}
	w.seconds = time.Since(start).Seconds()
	w.energy, w.power, w.energyBack = meter.joules()
	return w
}

// energyMeter compares the energy counter with the integral of power.
type energyMeter struct {
	dev         *nvml.Device
	first, last float64 // joules
	known       bool
	back        bool
	integral    float64
	watts       float64
	at          time.Time
	powerKnown  bool
}

func (m *energyMeter) read() {
	mj, ok := m.dev.Energy()
	now := time.Now()
	if ok {
		joules := float64(mj) / 1000
		if !m.known {
			m.first, m.known = joules, true
		} else if joules < m.last {
			m.back = true
		}
		m.last = joules
	}
	mw, ok := m.dev.PowerNow()
	if !ok {
		return
	}
	watts := float64(mw) / 1000
	if m.powerKnown {
		m.integral += (watts + m.watts) / 2 * now.Sub(m.at).Seconds()
	}
	m.watts, m.at, m.powerKnown = watts, now, true
}

func (m *energyMeter) joules() (counter, integral gpu.Opt[float64], back bool) {
	if m.known {
		counter = gpu.Some(m.last - m.first)
	}
	if m.powerKnown {
		integral = gpu.Some(m.integral)
	}
	return counter, integral, m.back
}

func (k *asker) sayEnergy(w *counterWindow, suffix string) {
	id := "energy-" + suffix
	counter, ok1 := w.energy.Get()
	integral, ok2 := w.power.Get()
	if !ok1 || !ok2 {
		k.lacks(id, "no energy counter or no power reading")
		return
	}
	values := map[string]any{"counter_joules": round(counter), "integral_joules": round(integral), "backwards": w.energyBack}
	if w.energyBack || integral <= 0 {
		k.say(id, values, "the counter went BACKWARDS, or no power was drawn")
		return
	}
	values["counter_per_integral_ratio"] = round(counter / integral)
	k.say(id, values, "%.1f J by the counter, %.1f J as the integral of power (%+.2f %%)", counter, integral, 100*(counter/integral-1))
}

func (k *asker) sayThrottle(w *counterWindow, suffix string) {
	id := "throttle-" + suffix
	var have, without, moved []string
	values := map[string]any{}
	delta, _ := gpu.Delta(w.throttle[0], w.throttle[1])
	for _, c := range nvml.ThrottleCounters() {
		name := strings.TrimSuffix(strings.TrimPrefix(string(c), "throttle_"), "_ns")
		d, ok := delta[c]
		if !ok {
			without = append(without, name)
			continue
		}
		have = append(have, name)
		values[string(c)] = d
		if d > 0 {
			moved = append(moved, fmt.Sprintf("%s %.1f %%", name, 100*float64(d)/1e9/w.seconds))
		}
	}
	if len(have) == 0 {
		k.lacks(id, "none of them")
		return
	}
	text := fmt.Sprintf("%d there", len(have))
	if len(without) > 0 {
		text += ", not: " + strings.Join(without, " ")
	}
	if len(w.throttleBack) > 0 {
		text += "; went BACKWARDS: " + strings.Join(slices.Sorted(maps.Keys(w.throttleBack)), " ")
	} else {
		text += "; none went backwards"
	}
	if len(moved) > 0 {
		text += "; of the time: " + strings.Join(moved, ", ")
	}
	k.say(id, values, "%s", text)
}
