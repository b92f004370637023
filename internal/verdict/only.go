package verdict

import (
	"slices"

	"gpuhooks/internal/check"
)

// Only returns the verdict as if just the named checks had run. For a person
// who wants to see one thing; no hook acts on it.
func (v Verdict) Only(checks []string) Verdict {
	out := v
	out.Outcome, out.Action = check.Skip, None
	out.Code, out.Class, out.Reason, out.OwnLost, out.GPUs = "", "", "", false, nil
	out.Findings = slices.DeleteFunc(slices.Clone(v.Findings), func(f Finding) bool { return !slices.Contains(checks, f.Check) })
	out.Notes = slices.DeleteFunc(slices.Clone(v.Notes), func(f check.Finding) bool { return !slices.Contains(checks, f.Check) })
	out.Checks = slices.DeleteFunc(slices.Clone(v.Checks), func(r Result) bool { return !slices.Contains(checks, r.Check) })
	for _, r := range out.Checks {
		if r.Outcome.Worse(out.Outcome) {
			out.Outcome = r.Outcome
		}
	}
	out.decide(check.Input{})
	return out
}
