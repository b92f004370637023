//go:build e2e

package detect

import (
	"slices"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/verdict"
)

// true findings on nodes that are well otherwise: they stand in the table, and
// are gone once a baseline says that it is meant so.
var findings = map[string][]string{
	"rtx4000-ada":  {"ecc-mode"},  // ECC is off
	"dgx-a100-mig": {"mig-empty"}, // GPU 2 is in MIG mode without an instance
}

func known(profile string, f verdict.Finding) bool {
	return slices.Contains(findings[profile], f.Check)
}

func unwell(v verdict.Verdict, profile string) bool {
	return slices.ContainsFunc(v.Findings, func(f verdict.Finding) bool { return !known(profile, f) })
}

// well looks at a node that is well: new, again, after a minute, busy, and by a
// baseline of its own.
func well(t *testing.T, profile string) row {
	w := newWorld(t, profile, "")
	r := row{what: profile, outcome: string(check.Pass), action: string(verdict.None)}
	see := func(when string) {
		w.Forget()
		v, took := w.look()
		r.took = max(r.took, took)
		if v.Action != verdict.None {
			t.Errorf("%s: %s", when, v.Summary())
			r.action = string(v.Action)
		}
		for _, f := range v.Findings {
			if !known(profile, f) {
				t.Errorf("%s: %s", when, f.Line())
				r.outcome = string(f.Outcome)
			}
			r.check, r.code, r.outcome = f.Check, f.Code, string(f.Outcome)
		}
	}
	see("new")
	see("again")
	w.age(time.Minute)
	w.Must(w.Set("gpu.*.util=0.97", "gpu.*.sm=0.9"))
	see("busy")
	if profile == "dgx-a100-mig" {
		return r // its cards are cut differently: there is no baseline of all
	}
	w.learn()
	w.Forget()
	if v, _ := w.look(); v.Outcome.Worse(check.Pass) {
		t.Errorf("by its own baseline: %+v", v.Findings)
	}
	return r
}
