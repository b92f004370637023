//go:build e2e

package detect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/verdict"
)

// reading is a public report of what nvidia-smi showed, played on a simulated
// node: what is right to conclude, and what is often concluded from it.
type reading struct {
	name    string
	profile string
	set     []string
	look    func(*world)   // what else happens before the look that counts
	want    []string       // "check: outcome gpu" of all findings
	notes   []string       // "check gpu"
	action  verdict.Action // "" is none
	mustNot []string       // checks that must say nothing, also no note
}

func TestReadings(t *testing.T) {
	each := func(n int, s string) (out []string) {
		for i := range n {
			out = append(out, strings.ReplaceAll(s, "N", string(rune('0'+i))))
		}
		return out
	}
	for _, r := range []reading{
		{
			// The first sample after the driver was initialised says 100 %.
			name: "E03-l40s-first-sample-100-percent", profile: "l40s-pcie", set: []string{"gpu.*.persistence=false", "gpu.*.util=1"},
			look: func(w *world) {
				w.look()
				w.Forget()
				w.Must(w.Set("gpu.*.util=0"))
			},
			want: each(4, "persistence: warn N"), mustNot: []string{"left-over-processes", "memory-in-use"},
		}, {
			// Asleep at generation 1, and eight lanes by the size of the instance.
			name: "E04-idle-pcie-gen1", profile: "l40s-idle", set: []string{"gpu.*.pcie.width=8"},
			notes: each(4, "pcie-link N"), mustNot: []string{"throttle", "pcie-slot"},
		}, {
			name: "E06-ecc-disabled-and-counter-without-context", profile: "rtx4000-ada", set: []string{"gpu.*.throttle.sw_power_cap=0.4"},
			look: func(w *world) {
				w.look()
				w.Forget()
				w.age(10 * time.Minute)
			},
			want: each(2, "ecc-mode: warn N"), notes: each(2, "persistence N"), mustNot: []string{"throttle"},
		}, {
			// A process holds memory: persistence mode would change nothing now.
			name: "E07-p0-without-persistence-not-idle-flag", profile: "l40s-pcie",
			set:   []string{"gpu.*.persistence=false", "gpu.*.pcie.width=8", "gpu.*.process.1=memory=1032MiB,type=compute", "gpu.*.clock.sm=585", "gpu.*.pcie.gen=3"},
			notes: append(each(4, "pcie-link N"), each(4, "persistence N")...), mustNot: []string{"throttle", "clocks"},
		}, {
			name: "E09-deprecated-strings", profile: "l40s-pcie",
			set: []string{"gpu.*.call.nvmlDeviceGetApplicationsClock=DEPRECATED", "gpu.*.util=0.65"},
		}, {
			name: "E11-err-fan-and-power-na", profile: "rtx4000-ada", set: []string{"gpu.0.call.nvmlDeviceGetFanSpeed=UNKNOWN", "gpu.0.power.supported=false", "gpu.*.ecc=none", "gpu.*.persistence=true"},
			want: []string{"readings: warn 0"},
		}, {
			name: "E11 on a passively cooled board", profile: "l40s-pcie", set: []string{"gpu.*.fan=none"},
		}, {
			// It looks like the idlest card of the node.
			name: "E12-requires-reset-looks-idle", profile: "dgx-h100", set: []string{"gpu.0.call.*=RESET_REQUIRED"},
			want: []string{"reset-required: fail 0"}, action: verdict.Drain,
		}, {
			name: "E14-gb10-unified-memory", profile: "l40s-pcie",
			set: []string{"gpu.*.name=NVIDIA GB10", "gpu.*.call.nvmlDeviceGetMemoryInfo=NOT_SUPPORTED", "gpu.*.call.nvmlDeviceGetMemoryInfo_v2=NOT_SUPPORTED",
				"gpu.*.call.nvmlDeviceGetEnforcedPowerLimit=NOT_SUPPORTED", "gpu.*.field.190=NOT_SUPPORTED", "gpu.*.ecc=none",
				"gpu.*.pcie.gen=1", "gpu.*.pcie.gen.max=1", "gpu.*.pcie.gen.card=1", "gpu.*.pcie.width=1", "gpu.*.pcie.width.max=1"},
			mustNot: []string{"pcie-link", "memory-in-use", "power-limit", "ecc-mode"},
		}, {
			// A context is held: waste, no fault.
			name: "E18-p0-and-warm-while-idle", profile: "l40s-pcie",
			set: []string{"gpu.*.process.1=memory=20294MiB,type=compute", "gpu.*.power=98", "gpu.*.clock.sm=2520"}, mustNot: []string{"throttle", "clocks"},
		}, {
			name: "E22-sw-power-cap-under-load", profile: "dgx-h100",
			set: []string{"gpu.5.util=1", "gpu.5.power=699.2", "gpu.5.clock.sm=1635", "gpu.5.throttle.reasons=4"}, mustNot: []string{"throttle"},
		}, {
			name: "E23-sw-power-cap-far-below-limit", profile: "a100-535",
			set:  []string{"gpu.0.util=1", "gpu.0.power=241", "gpu.0.power.limit=400", "gpu.0.clock.sm=1005", "gpu.0.throttle.reasons=4"},
			want: []string{"throttle: warn 0"},
		}, {
			name: "E26-all-nvlinks-inactive-on-hgx", profile: "b200", set: []string{"gpu.2.nvlink.*.active=false"},
			want: []string{"nvlink: fail 2"}, action: verdict.Drain,
		}, {
			name: "E26 on cards without a bridge", profile: "mixed",
		}, {
			name: "E27-fabric-completed-but-not-success", profile: "dgx-h100", set: []string{"gpu.*.fabric.status=23"},
			want: each(8, "fabric-state: fail N"), action: verdict.Drain,
		}, {
			name: "E28-gsp-dead-mixed-readings", profile: "dgx-h100",
			set: []string{"gpu.4.call.*=UNKNOWN", "gpu.4.call.nvmlDeviceGetHandleByIndex_v2=SUCCESS", "gpu.4.call.nvmlDeviceGetUUID=SUCCESS",
				"gpu.4.call.nvmlDeviceGetMemoryInfo=SUCCESS", "gpu.4.call.nvmlDeviceGetMemoryInfo_v2=SUCCESS"},
			want: []string{"gpu-silent: fail 4", "readings: error 4"}, action: verdict.Drain,
		},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.test(t)
		})
	}
}

func (r reading) test(t *testing.T) {
	w := newWorld(t, r.profile, "")
	if len(r.set) > 0 {
		w.Must(w.Set(r.set...))
	}
	if r.look != nil {
		r.look(w)
	}
	v, _ := w.look()
	var got, notes []string
	for _, f := range v.Findings {
		got = append(got, f.Check+": "+string(f.Outcome)+" "+index(f))
		if slices.Contains(r.mustNot, f.Check) {
			t.Errorf("must not be said: %s", f.Line())
		}
	}
	for _, n := range v.Notes {
		notes = append(notes, n.Check+" "+index(verdict.Finding{Finding: n}))
		if slices.Contains(r.mustNot, n.Check) {
			t.Errorf("must not be noted: %s: %s", n.Check, n.Text)
		}
	}
	slices.Sort(got)
	slices.Sort(notes)
	if !slices.Equal(got, r.want) || !slices.Equal(notes, r.notes) {
		t.Errorf("findings %q, want %q\nnotes %q, want %q\n%+v", got, r.want, notes, r.notes, v.Findings)
	}
	if drained := v.Action == verdict.Drain; drained != (r.action == verdict.Drain) {
		t.Errorf("action %s, want %s", v.Action, r.action)
	}
}

func index(f verdict.Finding) string {
	if f.GPU == nil {
		return "node"
	}
	return string(rune('0' + f.GPU.Index))
}
