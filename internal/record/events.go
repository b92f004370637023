package record

import (
	"slices"
	"sort"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

// KindCheck is the kind of an event that the epilog's checks found; the others
// are xid.Kind.
const KindCheck = "check"

// events are those of the job's GPUs, and those that name no GPU of the node: an
// NVSwitch's, or a line without an address.
func events(in Input, gpus []GPU) []Event {
	var seen []xid.Event
	if in.Sums != nil {
		seen = append(seen, in.Sums.Events...)
	}
	for _, e := range in.Events {
		if !slices.ContainsFunc(seen, func(o xid.Event) bool { return sameEvent(e, o) }) {
			seen = append(seen, e)
		}
	}
	seen = slices.DeleteFunc(seen, func(e xid.Event) bool { return !concerns(e, gpus) })
	out := []Event{}
	if len(seen) > 0 {
		c := xid.Catalogue{}
		if in.Catalog != nil {
			c = in.Catalog()
		}
		for i, j := range xid.JudgeAll(seen, c) {
			out = append(out, event(seen[i], j, gpus))
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		return out[i].Time.Or(time.Time{}).Before(out[j].Time.Or(time.Time{}))
	})
	xids := len(out) > 0
	for _, f := range in.Findings {
		if matters(f, gpus) && !(xids && f.Check == "xid") { // the events tell it better
			out = append(out, finding(f, in.Now))
		}
	}
	return out[:min(len(out), maxEvents)]
}

// sameEvent recognises what both the sampler and the epilog read.
func sameEvent(a, b xid.Event) bool {
	return a.Kind == b.Kind && a.Code == b.Code && a.PCI == b.PCI && a.Seq == b.Seq
}

func concerns(e xid.Event, gpus []GPU) bool {
	if e.Kind == xid.KindSXID || e.PCI == "" {
		return true
	}
	return slices.ContainsFunc(gpus, func(g GPU) bool { return ofGPU(e, g) })
}

func ofGPU(e xid.Event, g GPU) bool {
	if e.PCI != g.PCI {
		return false
	}
	gi, named := e.GI.Get()
	return g.MIG == nil || !named || gi == g.MIG.GI
}

func event(e xid.Event, j xid.Judgement, gpus []GPU) Event {
	out := Event{
		Count: max(e.Count, 1), Kind: string(e.Kind), Code: e.Code, PCI: e.PCI, UUID: e.UUID,
		PID: e.PID, Process: Clean(e.Process), Text: Clean(e.Text),
		Meaning: Clean(j.Name), Action: string(j.Action), Cause: cause(j),
	}
	if !e.First.IsZero() {
		out.Time = gpu.Some(e.First.UTC())
	}
	if e.Count > 1 && !e.Until.IsZero() {
		out.Until = gpu.Some(e.Until.UTC())
	}
	for _, g := range gpus {
		if out.UUID == "" && ofGPU(e, g) {
			out.UUID = g.UUID
		}
	}
	return out
}

// cause says whose matter an event is. An event that takes the GPU out of
// service is the hardware's, whatever its number often means.
func cause(j xid.Judgement) Cause {
	switch {
	case j.Severity == xid.Fail:
		return CauseHardware
	case j.Category == "app":
		return CauseApp
	case j.Category == "app_or_hw", j.Category == "app_or_pcie", j.Category == "app_or_driver":
		return CauseEither
	case j.Category == "":
		return CauseUnknown
	case j.Category == "info", j.Severity == xid.Info && j.Action == xid.ActionIgnore:
		return CauseInfo
	}
	return CauseHardware
}

// matters says whether a finding belongs into the record of this job: not what is
// wrong with another's GPU, and not how the node is set up.
func matters(f check.Finding, gpus []GPU) bool {
	switch {
	case f.GPU != nil && !slices.ContainsFunc(gpus, func(g GPU) bool { return g.UUID == f.GPU.UUID }):
		return false
	case f.Outcome == check.Fail:
		return true
	}
	return f.Outcome == check.Warn && f.GPU != nil && (f.Class == check.Hardware || f.Class == check.Dirty)
}

func finding(f check.Finding, now time.Time) Event {
	e := Event{
		Time: gpu.Some(now.UTC()), Count: 1, Kind: KindCheck, Check: f.Check,
		Meaning: Clean(f.Text), Cause: CauseHardware,
	}
	if f.Class == check.Dirty {
		e.Cause = CauseApp
	}
	if f.GPU != nil {
		e.PCI, e.UUID = f.GPU.PCI, f.GPU.UUID
	}
	return e
}
