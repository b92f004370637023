package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
)

// Run runs the checks that apply and judges what they found by the site's
// policy. A check that panics is one that could not look. clock times each check.
func Run(checks []check.Check, in check.Input, cfg config.Config, hook Hook, clock func() time.Time) Verdict {
	v := Verdict{
		Schema: Schema, Time: in.Node.Time, Hook: hook, Tier: in.Tier, Answer: in.Answer,
		Outcome: check.Skip, Action: None, Findings: []Finding{}, Checks: []Result{},
	}
	for _, c := range checks {
		p := policyOf(c, cfg, hook)
		result := Result{Check: c.Name, Outcome: check.Skip, Text: inapplicable(c, p, in, hook)}
		if result.Text == "" {
			began := clock()
			findings := run(c, in)
			result = summarise(c.Name, findings, p)
			result.Seconds = clock().Sub(began).Seconds()
			for _, f := range findings {
				switch f = p.apply(f); {
				case f.Outcome.Worse(check.Pass):
					v.Findings = append(v.Findings, Finding{Finding: f, Policy: p.leadsTo(f), Mode: p.mode})
				case f.Outcome == check.Pass && f.Text != "":
					v.Notes = append(v.Notes, f)
				}
			}
		}
		v.Checks = append(v.Checks, result)
		if result.Outcome.Worse(v.Outcome) {
			v.Outcome = result.Outcome
		}
	}
	sort.SliceStable(v.Findings, func(i, j int) bool { return weight(v.Findings[i]) > weight(v.Findings[j]) })
	v.decide(in)
	return v
}

// policy is what the site says about one check in one hook.
type policy struct {
	fail    config.Policy
	onError config.Policy
	mode    config.Mode
}

func policyOf(c check.Check, cfg config.Config, hook Hook) policy {
	own := cfg.Checks[c.Name]
	fail := own.HealthCheck
	switch hook {
	case Prolog:
		fail = own.Prolog
	case Epilog:
		fail = own.Epilog
	}
	return policy{
		fail:    cmp.Or(fail, c.Default, config.PolicyDrain),
		onError: cmp.Or(own.OnError, c.OnError, config.PolicyIgnore),
		mode:    cmp.Or(own.Mode, cfg.Mode, config.Observe),
	}
}

// apply turns a failure that the site only wants to be warned of into a warning.
func (p policy) apply(f check.Finding) check.Finding {
	if f.Outcome == check.Fail && p.fail == config.PolicyWarn {
		f.Outcome = check.Warn
	}
	return f
}

// leadsTo is what a finding, after apply, leads to.
func (p policy) leadsTo(f check.Finding) config.Policy {
	switch f.Outcome {
	case check.Fail:
		return p.fail
	case check.Error:
		return p.onError
	}
	return config.PolicyWarn
}

// inapplicable says why a check is not run; "" when it is.
func inapplicable(c check.Check, p policy, in check.Input, hook Hook) string {
	switch {
	case c.Tier > in.Tier:
		return fmt.Sprintf("needs tier %d", c.Tier)
	case p.fail == config.PolicyIgnore:
		return "ignored by the configuration"
	case c.Host && hook != HealthCheck:
		return "the health check looks at it"
	case c.Count && in.Expected.JobCgroup:
		return "the job's cgroup may hide devices"
	}
	return ""
}

// run runs one check and completes its findings.
func run(c check.Check, in check.Input) (out []check.Finding) {
	defer func() {
		if r := recover(); r != nil {
			out = []check.Finding{{Check: c.Name, Code: c.Code, Class: c.Class, Outcome: check.Error, Text: fmt.Sprintf("internal fault: %v", r)}}
		}
	}()
	out = c.Run(in)
	for i := range out {
		f := &out[i]
		f.Check = c.Name
		f.Code = cmp.Or(f.Code, c.Code)
		f.Class = cmp.Or(f.Class, c.Class)
	}
	return out
}

// summarise is one check's worst outcome. It does not apply only if that is so
// everywhere.
func summarise(name string, findings []check.Finding, p policy) Result {
	if len(findings) == 0 {
		return Result{Check: name, Outcome: check.Pass}
	}
	r := Result{Check: name, Outcome: check.Skip}
	for i, f := range findings {
		if f = p.apply(f); i == 0 || f.Outcome.Worse(r.Outcome) {
			r.Outcome, r.Text = f.Outcome, f.Text
		}
	}
	if r.Outcome == check.Pass {
		r.Text = ""
	}
	return r
}

// weight sorts findings: first what takes the node out of service, then by
// outcome.
func weight(f Finding) int {
	w := 0
	switch f.Outcome {
	case check.Fail:
		w = 3
	case check.Error:
		w = 2
	case check.Warn:
		w = 1
	}
	if f.Acts() {
		w += 10
		if f.Mode == config.Enforce {
			w += 10
		}
	}
	return w
}

// decide takes the action from the sorted findings, and says why.
func (v *Verdict) decide(in check.Input) {
	if len(v.Findings) == 0 || !v.Findings[0].Acts() {
		return
	}
	first := v.Findings[0]
	v.Action, v.Code, v.Class = WouldDrain, first.Code, first.Class
	if first.Mode == config.Enforce {
		v.Action = Drain
	}
	var deciding []Finding
	for _, f := range v.Findings {
		if !f.Acts() || f.Mode != first.Mode {
			break
		}
		deciding = append(deciding, f)
		if f.Class == check.Hardware {
			v.Class = check.Hardware // needs a person, whatever stands before it
		}
		if f.GPU == nil {
			continue
		}
		if !slices.Contains(v.GPUs, *f.GPU) {
			v.GPUs = append(v.GPUs, *f.GPU)
		}
		// Only a job that has GPUs of its own can have lost one of them.
		if f.Check == "gpu-lost" && v.Hook == Prolog && slices.Contains(in.Only, f.GPU.UUID) {
			v.OwnLost = true
		}
	}
	v.Reason = reason(deciding)
}
