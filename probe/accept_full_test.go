//go:build cgo && full

package main

import (
	"math"
	"strings"
	"testing"
)

// The whole script, beside a simulated load: every question is answered, and
// where the simulator knows the answer it is that.
func TestAcceptanceFindsTheSimulatedTruth(t *testing.T) {
	t.Parallel()
	n := newAcceptNode(t, "dgx-h100")
	if err := n.Set("gpu.0.throttle.sw_power_cap=0.25"); err != nil {
		t.Fatal(err)
	}
	doc, table, said, status := n.run(t, "--load", n.Tool()+" load --gpus 0 --sm 0.82 --tensor 0.46 --util 1")
	if status != 0 || doc.Schema != acceptanceSchema {
		t.Fatalf("status %d, schema %q: %s", status, doc.Schema, said)
	}
	got := map[string]answer{}
	for _, a := range doc.Answers {
		got[a.ID] = a
		if a.State == failed || a.Question == "" {
			t.Errorf("%s: %s: %s", a.ID, a.State, a.Answer)
		}
		if !strings.Contains(table, a.Answer) {
			t.Errorf("%s is not in the table", a.ID)
		}
	}
	if len(got) != len(questions) {
		t.Errorf("%d answers to %d questions", len(got), len(questions))
	}
	for _, want := range []struct {
		id, value string
		is, by    float64
	}{
		{"driver", "gpu_count", 8, 0},
		{"tier1-probe", "runs", 50, 0},
		{"gpm-gap", "good_of_3_at_0_ms", 0, 1},
		{"gpm-gap", "good_of_3_at_200_ms", 3, 0},
		{"pairs-load", "sm_active_ratio_pairs", 0.82, 0.004},
		{"pairs-load", "sm_active_ratio_long", 0.82, 0.004},
		{"pairs-load", "tensor_active_ratio_long", 0.46, 0.004},
		{"pairs-load", "worst_difference_ratio", 0, 0.004},
		{"pairs-idle", "sm_active_ratio_long", 0, 0},
		{"cumulative-load", "sm_active_cycles_per_elapsed_ratio", 0.82, 0.004},
		{"energy-idle", "counter_per_integral_ratio", 1, 0.03},
		{"energy-load", "counter_per_integral_ratio", 1, 0.03},
		{"throttle-load", "throttle_sw_power_cap_ns", 0.25e9, 0.1e9},
		{"ring-load", "entries", 72, 0},
		{"ring-load", "interval_p50_milliseconds", 140, 3},
		{"client", "closed_watts", 72, 4},
		{"client", "open_watts", 72, 4},
	} {
		v, ok := got[want.id].Values[want.value].(float64)
		if !ok || math.Abs(v-want.is) > want.by {
			t.Errorf("%s: %s is %v, want %g: %s", want.id, want.value, got[want.id].Values[want.value], want.is, got[want.id].Answer)
		}
	}
	for id, want := range map[string]string{
		"gpm-streaming": "on", "gpm-cumulative": "all 13 are there", "calls": "42 calls made: NOT_SUPPORTED: GetRepairStatus",
		"rights": "no call is refused; a GPM sample answers SUCCESS",
	} {
		if !strings.HasSuffix(got[id].Answer, want) {
			t.Errorf("%s: %q, want …%q", id, got[id].Answer, want)
		}
	}
}
