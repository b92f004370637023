package node

import (
	"gpuhooks/internal/check"
	"gpuhooks/internal/verdict"
)

// appErrors adds the application errors of this look to those that were known.
// Both the judgement and the memory need them: an event counts in the look that
// reads it, and in those that follow.
func (l *Look) appErrors(known check.AppErrors, in check.Input, jobs Jobs) check.AppErrors {
	job := func(uuid string) string {
		// What a prolog reads was before its job, whose number would be wrong.
		if on := jobs.OnGPU[uuid]; len(on) == 1 && l.opt.Hook != verdict.Prolog {
			return on[0]
		}
		return ""
	}
	out := known.Note(in.Kernel.Events, in, job)
	if len(out) > maxGPUs {
		return known
	}
	return out
}
