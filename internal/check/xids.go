package check

import (
	"fmt"
	"slices"

	"gpuhooks/internal/config"
	"gpuhooks/internal/xid"
)

var xids = Check{
	Name: "xid", Code: "XID", Tier: 0, Class: Hardware,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Did the kernel log, since the last good look at the GPU, hold an XID (or an NVSwitch's SXid) that asks for more than a restart of the application?",
		Why:  "The driver has said that the GPU needs a reset, a reboot or a repair; jobs on it fail or compute wrong results.",
		Cure: "gpu-healthcheck explain xid N says what the number means and what to do.",
	},
	Run: func(in Input) []Finding {
		var out []Finding
		switch {
		case !in.Kernel.Read:
			out = append(out, Finding{Outcome: Error, Text: "the kernel log could not be read: " + in.Kernel.Why})
		case in.Kernel.Lost > 0:
			out = append(out, Finding{Outcome: Error, Text: fmt.Sprintf("the kernel log overwrote %d records before they were read", in.Kernel.Lost)})
		}
		if len(in.Kernel.Events) == 0 {
			return out
		}
		catalog := in.Catalog()
		judged := xid.JudgeAll(in.Kernel.Events, catalog)
		for i, e := range in.Kernel.Events {
			if f, ok := xidFinding(in, e, judged[i], catalog); ok && !repeated(out, f) {
				out = append(out, f)
			}
		}
		return out
	},
}

// xidFinding leaves out what asks for nothing, what another check says (a lost
// GPU) and what is about a GPU that is not judged.
func xidFinding(in Input, e xid.Event, j xid.Judgement, catalog xid.Catalogue) (Finding, bool) {
	f := Finding{GPU: eventGPU(in, e), Text: xid.Explain(e, catalog) + "; " + eventText(e)}
	switch j.Severity {
	case xid.Fail:
		f.Outcome = Fail
	case xid.Warn:
		f.Outcome = Warn
	}
	if f.Outcome == "" || fallen(e) {
		return f, false
	}
	switch e.Kind {
	case xid.KindXID:
		f.Code = fmt.Sprintf("XID%d", e.Code)
	case xid.KindSXID:
		f.Code, f.Class = fmt.Sprintf("SXID%d", e.Code), Fabric
		f.GPU = nil // the address is the switch's
	case xid.KindGSP:
		f.Code = "GSP"
	case xid.KindMismatch:
		f.Class = Driver
	}
	if f.GPU != nil && f.GPU.UUID != "" && !in.Judged(f.GPU.UUID) {
		return f, false
	}
	return f, true
}

// repeated says that the same code on the same GPU is already reported as at
// least as bad.
func repeated(all []Finding, f Finding) bool {
	return slices.ContainsFunc(all, func(o Finding) bool {
		same := o.GPU == nil && f.GPU == nil || o.GPU != nil && f.GPU != nil && o.GPU.PCI == f.GPU.PCI
		return same && o.Code == f.Code && !f.Outcome.Worse(o.Outcome)
	})
}
