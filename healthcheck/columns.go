package main

import (
	"fmt"
	"strings"

	"gpuhooks/internal/gpu"
)

// columns are what people look for in nvidia-smi, without what is misread there:
// GPU-Util says that a kernel ran and not how much of the card worked; a power
// cap reached under load is how the card works; generation 1 is an idle link.
var columns = []struct {
	head string
	cell func(*gpu.GPU) string
}{
	{"UTIL", func(g *gpu.GPU) string { return reading(g.Readings, gpu.Utilization, 100, "%.0f %%") }},
	{"MEMORY", memory},
	{"TEMP", func(g *gpu.GPU) string { return reading(g.Readings, gpu.Temperature, 1, "%.0f C") }},
	{"POWER/CAP", power},
	{"THROTTLED", throttled},
	{"LINK", link},
	{"ECC", func(g *gpu.GPU) string { return mode(g.Health.ECC) }},
	{"PERSIST", func(g *gpu.GPU) string { return onOff(g.Health.Persistence) }},
	{"MIG", mig},
}

func opt[T any](o gpu.Opt[T], format string) string {
	v, ok := o.Get()
	if !ok {
		return unknown
	}
	return fmt.Sprintf(format, v)
}

func reading(r gpu.Readings, m gpu.Metric, scale float64, format string) string {
	v, ok := r[m]
	if !ok {
		return unknown
	}
	return fmt.Sprintf(format, v*scale)
}

func onOff(o gpu.Opt[bool]) string {
	switch on, ok := o.Get(); {
	case !ok:
		return unknown
	case on:
		return "on"
	}
	return "off"
}

// mode is a mode now and, where that differs, after the next reset.
func mode(o gpu.Opt[gpu.Switch]) string {
	s, ok := o.Get()
	if !ok {
		return unknown
	}
	now, next := onOff(gpu.Some(s.Current)), onOff(gpu.Some(s.Pending))
	if now != next {
		return now + ", then " + next
	}
	return now
}

func mig(g *gpu.GPU) string {
	s := mode(g.Health.MIG)
	if n := len(g.Instances); n > 0 {
		s += fmt.Sprintf(" (%d)", n)
	}
	return s
}

func power(g *gpu.GPU) string {
	now, limit := reading(g.Readings, gpu.Power, 1, "%.0f"), opt(g.Health.PowerLimit, "%.0f")
	switch {
	case limit == unknown && now == unknown:
		return unknown
	case limit == unknown:
		return now + " W"
	}
	return now + "/" + limit + " W"
}

// throttled names what holds the clocks down now. Idle is not throttling.
func throttled(g *gpu.GPU) string {
	bits, ok := g.Health.Throttle.Get()
	if !ok {
		return unknown
	}
	names := gpu.ThrottleReasons(bits)
	if len(names) == 0 {
		return "no"
	}
	return strings.Join(names, "+")
}

func link(g *gpu.GPU) string {
	h := g.Health
	if !h.PCIeGen.IsSet() && !h.PCIeWidth.IsSet() {
		return unknown
	}
	return "gen" + opt(h.PCIeGen, "%d") + " x" + opt(h.PCIeWidth, "%d")
}

func memory(g *gpu.GPU) string {
	const gib = 1 << 30
	total := unknown
	if v, ok := g.Health.MemoryTotal.Get(); ok {
		total = fmt.Sprintf("%.0f GiB", float64(v)/gib)
	}
	used := reading(g.Readings, gpu.MemoryUsed, 1.0/gib, "%.1f")
	if used == unknown && total == unknown {
		return unknown
	}
	return used + "/" + total
}
