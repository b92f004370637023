package check

import (
	"fmt"
	"slices"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var driverStuck = Check{
	Name: "driver-stuck", Code: "STUCK", Tier: 0, Class: Driver, Host: true,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Does a thread wait inside the NVIDIA driver, uninterruptibly (state D), in one and the same wait since an earlier look ([limits] stuck_for)?",
		Why:  "No signal ends it: its job cannot be killed, slurmd waits for it, and sooner or later everything that touches the driver hangs behind it.",
		Cure: "cat /proc/PID/stack and keep it, with nvidia-bug-report.sh if that still answers; then reboot. Nothing else ends such a wait.",
	},
	Run: func(in Input) []Finding {
		if in.Node.Host == nil {
			return []Finding{{Outcome: Error, Text: "what surrounds the GPUs was not read before the deadline"}}
		}
		var out []Finding
		if f := hostFault(in.Node.Host, "/proc"); f != nil {
			out = append(out, faulty(f))
		}
		for _, threads := range byProcess(in.Node.Host.Stuck) {
			out = append(out, judgeStuck(in, threads))
		}
		return out
	},
}

// Stuck is a thread in the driver with the time at which it was first seen there.
type Stuck struct {
	gpu.Stuck
	First time.Time `json:"first"`
}

// SameWait says that two sightings are of one thread that has not run in
// between. Where the kernel does not count switches, the thread alone counts.
func SameWait(a, b gpu.Stuck) bool {
	return a.PID == b.PID && a.TID == b.TID && a.Start == b.Start && a.Switches == b.Switches
}

// byProcess puts the threads of a process together, in the order of the list.
func byProcess(all []gpu.Stuck) [][]gpu.Stuck {
	var out [][]gpu.Stuck
	for _, s := range all {
		i := slices.IndexFunc(out, func(o []gpu.Stuck) bool { return o[0].PID == s.PID })
		if i < 0 {
			out = append(out, nil)
			i = len(out) - 1
		}
		out[i] = append(out[i], s)
	}
	return out
}

// judgeStuck judges the threads of one process by the one that has waited longest.
func judgeStuck(in Input, threads []gpu.Stuck) Finding {
	worst, since := threads[0], in.Node.Time
	for _, t := range threads {
		i := slices.IndexFunc(in.Memory.Stuck, func(o Stuck) bool { return SameWait(o.Stuck, t) })
		if i >= 0 && in.Memory.Stuck[i].First.Before(since) {
			worst, since = t, in.Memory.Stuck[i].First
		}
	}
	text := fmt.Sprintf("process %d (%s)", worst.PID, worst.Name)
	if worst.Job != "" {
		text += " of job " + worst.Job
	}
	text += " waits in " + worst.Where
	if n := len(threads); n > 1 {
		text += fmt.Sprintf(" (%d threads)", n)
	}
	waited := in.Node.Time.Sub(since)
	if waited >= in.Limits.StuckFor.D() && waited > 0 {
		return Finding{Outcome: Fail, Text: fmt.Sprintf("%s for %s without having run", text, waited.Round(time.Second))}
	}
	return Finding{Outcome: Warn, Text: text + ": a fault if a later look finds it there still"}
}
