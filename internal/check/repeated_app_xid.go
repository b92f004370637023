package check

import (
	"fmt"
	"maps"
	"slices"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

var repeatedAppXID = Check{
	Name: "repeated-app-xid", Code: "XIDREP", Tier: 0, Class: Hardware,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Did at least three different jobs on one GPU, within seven days of this boot, end in an application error (XID 13 or 31)?",
		Why:  "One such error is the program's fault; the same from different programs on one card is a card that computes or addresses wrongly.",
		Cure: "Run tiers 2 and 3 on the GPU when it is idle; if they pass, compare with the same jobs elsewhere.",
	},
	Run: func(in Input) []Finding {
		var out []Finding
		for _, uuid := range slices.Sorted(maps.Keys(in.Memory.AppErrors)) {
			n := xid.AppErrorJobs(in.Memory.AppErrors[uuid], in.Now)
			if n < xid.SuspectJobs || !in.Judged(uuid) {
				continue
			}
			out = append(out, Finding{
				Outcome: Fail, GPU: eventGPU(in, xid.Event{UUID: uuid}),
				Text: fmt.Sprintf("application errors (XID 13, 31) of %d different jobs on this GPU: suspect the hardware, run tiers 2 and 3", n),
			})
		}
		if len(out) == 0 && !in.Kernel.Read {
			out = append(out, Finding{Outcome: Skip, Text: "the kernel log was not read"})
		}
		return out
	},
}

// AppErrors are the application errors of each GPU, by its UUID: one for each job.
type AppErrors map[string][]xid.AppError

// Note adds those among the events of a look; job names the job that had the GPU.
func (known AppErrors) Note(events []xid.Event, in Input, job func(uuid string) string) AppErrors {
	out := maps.Clone(known)
	for _, e := range events {
		var g *gpu.Identity
		if xid.IsAppError(e) {
			g = eventGPU(in, e)
		}
		if g == nil || g.UUID == "" {
			continue
		}
		if out == nil {
			out = AppErrors{}
		}
		out[g.UUID] = xid.NoteAppError(out[g.UUID], e, job(g.UUID))
	}
	return out
}
