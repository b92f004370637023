//go:build cgo

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/nvml"
)

// sayPairs compares the mean of the short pairs with the long pair.
func (k *asker) sayPairs(w *gpmWindow, suffix string) {
	id := "pairs-" + suffix
	if w.pairCount == 0 || w.long == nil {
		k.lacks(id, "no GPM pairs%s", because(w.faults))
		return
	}
	values := map[string]any{"pairs": w.pairCount, "seconds": round(w.seconds)}
	worst, which := 0.0, "all alike"
	var text []string
	for _, m := range w.long {
		p := w.pairs[m.Name]
		if p == nil || m.Result != nvml.Success || math.IsNaN(m.Value) {
			continue
		}
		if !strings.HasSuffix(m.Name, "_ratio") {
			continue // rates are judged by the cumulative counters
		}
		short, long := p.value()/100, m.Value/100
		values[m.Name+"_pairs"], values[m.Name+"_long"] = round(short), round(long)
		if diff := math.Abs(short - long); diff > worst {
			worst, which = diff, m.Name
		}
		switch gpu.Metric(m.Name) {
		case gpu.SMActive, gpu.TensorActive, gpu.DRAMActive:
			text = append(text, fmt.Sprintf("%s %.4f and %.4f", strings.TrimSuffix(m.Name, "_ratio"), short, long))
		}
	}
	values["worst_difference_ratio"] = round(worst)
	k.say(id, values, "%d pairs over %.0f s: %s; worst difference %.4f (%s)", w.pairCount, w.seconds, strings.Join(text, ", "), worst, which)
}

// sayTotals compares what the cumulative counters grew by with the long pair:
// their units are nowhere written down.
func (k *asker) sayTotals(w *gpmWindow, suffix string) {
	id := "cumulative-" + suffix
	grown := map[string]float64{}
	back := false
	for _, end := range w.totals[1] {
		for _, start := range w.totals[0] {
			if start.ID == end.ID && start.Result == nvml.Success && end.Result == nvml.Success {
				grown[end.Name] = end.Value - start.Value
				back = back || end.Value < start.Value
			}
		}
	}
	elapsed := grown[string(gpu.SMCyclesElapsed)]
	if len(grown) == 0 || elapsed == 0 {
		k.lacks(id, "no cumulative counters%s", because(w.faults))
		return
	}
	values := map[string]any{"elapsed_cycles_per_second": round(elapsed / w.seconds), "backwards": back}
	text := []string{fmt.Sprintf("elapsed %.4g cycles/s", elapsed/w.seconds)}
	for _, c := range []struct {
		counter gpu.Counter
		metric  gpu.Metric
	}{{gpu.SMCyclesActive, gpu.SMActive}, {gpu.TensorCycles, gpu.TensorActive}, {gpu.FP32Cycles, gpu.FP32Active}} {
		if _, ok := grown[string(c.counter)]; !ok {
			continue
		}
		ratio, long := grown[string(c.counter)]/elapsed, find(w.long, c.metric).Value/100
		values[string(c.counter)+"_per_elapsed_ratio"], values[string(c.metric)+"_long"] = round(ratio), round(long)
		text = append(text, fmt.Sprintf("%s by counter %.4f, by pair %.4f", strings.TrimSuffix(string(c.metric), "_ratio"), ratio, long))
	}
	if bytes, ok := grown[string(gpu.PCIeTxBytes)]; ok {
		rate, long := bytes/w.seconds, find(w.long, gpu.PCIeTx).Value*(1<<20)
		values["pcie_tx_counter_per_second"], values["pcie_tx_bytes_per_second_long"] = round(rate), round(long)
		text = append(text, fmt.Sprintf("PCIe sent by counter %.4g/s, by pair %.4g B/s", rate, long))
	}
	if back {
		text = append(text, "a counter went BACKWARDS")
	}
	k.say(id, values, "%s", strings.Join(text, "; "))
}

// because adds what went wrong, if anything did.
func because(faults map[string]bool) string {
	if len(faults) == 0 {
		return ""
	}
	return ": " + strings.Join(slices.Sorted(maps.Keys(faults)), ", ")
}
