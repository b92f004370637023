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

// gpm asks what GPM is here and what it costs.
func (k *asker) gpm() {
	state, fault := k.lib.GPMState(k.o.gpu)
	if fault != nil {
		k.fail("gpm-support", "%v", fault)
		return
	}
	k.sayStreaming(state)
	first, second := k.samples()
	result := nvml.Missing
	if first != nil {
		defer k.lib.FreeGPMSample(first)
		defer k.lib.FreeGPMSample(second)
		result = k.dev.SampleGPM(first)
	}
	has := map[bool]string{true: "yes", false: "no"}[state.Supported.Or(false)]
	if !state.Supported.IsSet() {
		has = string(state.Query)
	}
	k.say("gpm-support", map[string]any{"supported": state.Supported, "query": state.Query, "sample": result},
		"the driver says %s; a sample answers %s", has, result)
	k.sayMIG(first)
	if result != nvml.Success {
		for _, id := range []string{"gpm-gap", "gpm-cumulative"} {
			k.lacks(id, "no GPM here")
		}
		k.sayCost(nil, nil)
		return
	}
	k.sayGap(first, second)
	k.sayCumulative(second)
	k.sayCost(first, second)
}

// samples allocates two buffers; nil where there is no GPM.
func (k *asker) samples() (a, b *nvml.GPMSample) {
	a, ok := k.lib.NewGPMSample()
	if !ok {
		return nil, nil
	}
	if b, ok = k.lib.NewGPMSample(); !ok {
		k.lib.FreeGPMSample(a)
		return nil, nil
	}
	return a, b
}

func (k *asker) sayStreaming(s nvml.GPMState) {
	on, ok := s.Streaming.Get()
	if !ok {
		k.lacks("gpm-streaming", "the question answers %s", s.Ask)
		return
	}
	k.say("gpm-streaming", map[string]any{"streaming": on}, "%s", map[bool]string{true: "on", false: "off"}[on])
}

// sayMIG samples every MIG device of the GPU, and the GPU itself.
func (k *asker) sayMIG(s *nvml.GPMSample) {
	g := k.lib.Read(k.o.gpu, nil, nvml.Options{CountersOnly: true}, nil)
	if !g.Health.MIG.Or(gpu.Switch{}).Current {
		k.write(answer{ID: "gpm-mig", State: notAsked, Answer: "not in MIG mode"})
		return
	}
	if s == nil {
		k.lacks("gpm-mig", "no GPM here")
		return
	}
	values := map[string]any{"whole": k.dev.SampleGPM(s)}
	text := []string{fmt.Sprintf("whole GPU %s", values["whole"])}
	for _, in := range g.Instances {
		result := nvml.Missing
		if d, fault := k.lib.Device(in.UUID); fault == nil {
			result = d.SampleGPM(s)
		}
		name := fmt.Sprintf("instance gi=%d ci=%d %s", in.GI, in.CI, in.Profile)
		values[name] = result
		text = append(text, name+" "+string(result))
	}
	k.say("gpm-mig", values, "%s", strings.Join(text, ", "))
}

// gaps are the distances between two samples that are tried.
var gaps = []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	80 * time.Millisecond, 100 * time.Millisecond, 120 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond}

// sayGap finds the shortest distance from which on every pair gives a number.
func (k *asker) sayGap(first, second *nvml.GPMSample) {
	const tries = 3
	values := map[string]any{}
	shortest := time.Duration(-1)
	said := map[string]bool{}
	for _, gap := range gaps {
		good := 0
		for range tries {
			k.dev.SampleGPM(first)
			time.Sleep(gap)
			k.dev.SampleGPM(second)
			list, fault := k.lib.GPMMetrics(first, second)
			switch m := find(list, gpu.SMActive); {
			case fault != nil:
				said[fmt.Sprint(fault)] = true
			case m.Result != nvml.Success:
				said[string(m.Result)] = true
			case math.IsNaN(m.Value):
				said["NaN"] = true
			default:
				good++
			}
		}
		values[fmt.Sprintf("good_of_%d_at_%d_ms", tries, gap.Milliseconds())] = good
		switch {
		case good < tries:
			shortest = -1
		case shortest < 0:
			shortest = gap
		}
	}
	others := "nothing else"
	if len(said) > 0 {
		others = strings.Join(slices.Sorted(maps.Keys(said)), ", ")
	}
	if shortest < 0 {
		k.say("gpm-gap", values, "no distance up to %v gives a number every time; else %s", gaps[len(gaps)-1], others)
		return
	}
	k.say("gpm-gap", values, "from %v on every pair gives a number; shorter ones: %s", shortest, others)
}

// sayCumulative says which cumulative metrics there are.
func (k *asker) sayCumulative(s *nvml.GPMSample) {
	list, fault := k.lib.GPMTotals(s)
	if fault != nil {
		k.lacks("gpm-cumulative", "%v", fault)
		return
	}
	values := map[string]any{}
	var have, without []string
	for _, m := range list {
		values[fmt.Sprintf("metric_%d_%s", m.ID, m.Name)] = m.Result
		if m.Result == nvml.Success {
			have = append(have, fmt.Sprint(m.ID))
		} else {
			without = append(without, fmt.Sprintf("%d %s", m.ID, m.Result))
		}
	}
	switch {
	case len(without) == 0:
		k.say("gpm-cumulative", values, "all %d are there", len(have))
	case len(have) == 0:
		k.write(answer{ID: "gpm-cumulative", State: unsupported, Answer: "none; " + without[0], Values: values})
	default:
		k.say("gpm-cumulative", values, "there: %s; not: %s", strings.Join(have, " "), strings.Join(without, ", "))
	}
}

// sayCost times samples and the sampler's own read, and weighs the process.
func (k *asker) sayCost(first, second *nvml.GPMSample) {
	values := map[string]any{}
	var text []string
	if first != nil {
		var take, count []time.Duration
		for range 200 {
			t := time.Now()
			k.dev.SampleGPM(second)
			took := time.Since(t)
			_, _ = k.lib.GPMMetrics(first, second) // timed whatever it answers
			take, count = append(take, took), append(count, time.Since(t)-took)
		}
		values["sample_p50_microseconds"], values["sample_p99_microseconds"] = micros(quantile(take, 0.5)), micros(quantile(take, 0.99))
		values["metrics_p50_microseconds"], values["metrics_p99_microseconds"] = micros(quantile(count, 0.5)), micros(quantile(count, 0.99))
		text = append(text, fmt.Sprintf("sample %.0f µs, its metrics %.0f µs", micros(quantile(take, 0.5)), micros(quantile(count, 0.5))))
	}
	var p nvml.Point
	var reads []time.Duration
	cpu := processorTime()
	for range 100 {
		t := time.Now()
		k.dev.Read(&p, second, nvml.Usual)
		reads = append(reads, time.Since(t))
	}
	perRead := (processorTime() - cpu) / 100
	values["read_p50_microseconds"], values["read_p99_microseconds"] = micros(quantile(reads, 0.5)), micros(quantile(reads, 0.99))
	values["read_processor_microseconds"] = micros(perRead)
	text = append(text, fmt.Sprintf("a sampler's read %.0f µs (p99 %.0f), of it %.0f µs of CPU",
		micros(quantile(reads, 0.5)), micros(quantile(reads, 0.99)), micros(perRead)))
	k.say("gpm-cost", values, "%s", strings.Join(text, "; "))

	k.memory = append(k.memory, residentKiB())
	k.say("gpm-memory", map[string]any{"before_kib": k.memory[0], "open_kib": k.memory[1], "sampling_kib": k.memory[2]},
		"%.1f MiB before NVML, %.1f with it open, %.1f after sampling", mib(k.memory[0]), mib(k.memory[1]), mib(k.memory[2]))
}

// find returns a metric of a list by its name.
func find(list []nvml.GPMMetric, name gpu.Metric) nvml.GPMMetric {
	for _, m := range list {
		if m.Name == string(name) {
			return m
		}
	}
	return nvml.GPMMetric{Result: nvml.Missing}
}
