package check

import (
	"slices"
	"time"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

// Input is everything a check may look at. Node is the whole node; only the GPUs
// that Judged names are judged.
type Input struct {
	Node      gpu.Node
	Tier      int        // what was asked of the probe
	Only      []string   // UUIDs to judge; nil is all
	Answer    gpu.Answer // how the probe answered
	Kernel    Kernel
	Memory    Memory
	Expected  Expected
	Baseline  baseline.Baseline // the zero value expects nothing
	Unusable  string            // why the baseline could not be read; "" when it could, or there is none
	Limits    config.Limits
	Processes Processes
	Now       time.Time
	Catalog   func() xid.Catalogue // parsed on first use
}

// Kernel is what the kernel log says since the last good look at each GPU.
type Kernel struct {
	Read   bool        // the log was read to its end
	Why    string      // why not, when it was not
	Events []xid.Event // cancelled ones (a reset came after them) already left out
	Lost   uint64      // records overwritten before anybody read them: Events are incomplete
}

// Memory is what earlier looks left.
type Memory struct {
	Good     map[string]gpu.Counters // by GPU UUID: counters at the last good look of this driver load
	Last     map[string]Before       // by GPU UUID, PCI address or "mlx5_0/1": all counters at the last look, good or not, of this driver load
	Seen     []gpu.Process           // processes without a live job that a hook saw at least 3 s ago
	Stuck    []Stuck                 // threads that an earlier look found waiting in the driver
	NoAnswer time.Time               // when a probe first did not answer, with no answer since; zero if none
	// Hasty says why silence proves nothing for this hook: it gives the driver
	// too little time. "" where it does prove something.
	Hasty string
	// AppErrors are the XIDs 13 and 31 of each GPU, those of this look included.
	AppErrors AppErrors
}

// Before is one earlier look at something that counts: the difference to now,
// over the time between, is a rate. A counter never judges by its life's total.
type Before struct {
	Time     time.Time
	Counters gpu.Counters
	Suspect  []string // names of checks that found something which counts only if it is still so
}

// Expected is what this node is to have.
type Expected struct {
	GPUs      gpu.Opt[int] // from gres.conf
	Minors    []int        // /dev/nvidiaN named by gres.conf
	Caps      []int        // /dev/nvidia-caps/nvidia-capN named by gres.conf
	Instances map[int]int  // MIG devices that gres.conf names, by the N of their card's /dev/nvidiaN
	JobCgroup bool         // we run inside a job's cgroup (PrologFlags=RunInJob)
}

// Processes says which processes are no left-overs.
type Processes struct {
	Allow      []string // names
	HasCgroups bool     // jobs have cgroups, so that a process can be attributed
	LiveJobs   []string // job ids
	SharedGPUs []string // UUIDs on which several jobs may run
}

// Judged says whether the GPU with that UUID is to be judged.
func (in Input) Judged(uuid string) bool { return in.Only == nil || slices.Contains(in.Only, uuid) }

// Driverless says that the kernel module is not there at all: what depends on it
// need not be reported beside that.
func (in Input) Driverless() bool {
	loaded, known := in.Node.Presence.ModuleLoaded.Get()
	return known && !loaded || gpu.HasFault(in.Node.Faults, gpu.FaultNoDriver)
}

// Answered says that the driver answered for the node: without it the absence of
// a GPU in the answer means nothing.
func (in Input) Answered() bool {
	return in.Tier >= 1 && in.Answer == gpu.AnswerWhole && in.Node.Driver.Count.IsSet() && len(in.Node.Faults) == 0
}

// each runs a judgement on every judged GPU that the driver reported. Where a
// value was not there (Skip) although the answer of this GPU broke off, the
// finding is Error: nobody knows whether the driver would have given it.
func each(in Input, judge func(*gpu.GPU) Finding) []Finding {
	var out []Finding
	for i := range in.Node.GPUs {
		g := &in.Node.GPUs[i]
		if !in.Judged(g.UUID) {
			continue
		}
		f := judge(g)
		if f.Outcome == Skip && !g.Complete {
			f = Finding{Outcome: Error, Text: "not read before the deadline"}
		}
		f.GPU = &g.Identity
		out = append(out, f)
	}
	if len(out) == 0 { // no finding would be Pass, and nobody has looked at anything
		return []Finding{{Outcome: Skip, Text: "no GPU was read"}}
	}
	return out
}

// unsupported is the finding where the driver does not report a value.
func unsupported(what string) Finding {
	return Finding{Outcome: Skip, Text: "the driver does not report " + what}
}
