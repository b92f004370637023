package record

import (
	"slices"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/xid"
)

// Input is what prolog, sampler and epilog left of a run. Everything but Epilog,
// Now and Version may be missing; the record then says so.
type Input struct {
	Job           *runs.Job        // job.json; nil: no prolog ran, or its state is gone
	Epilog        slurm.Job        // as slurmd told the epilog; for a lost node, as it told the prolog
	Sums          *runs.Sums       // sums.json or the checkpoint; nil: nobody sampled
	End           *runs.Point      // end counters; nil: they could not be read
	EndDriverLoad string           // driver load at the end, "" when unknown
	BootID        string           // of the running system
	Events        []xid.Event      // what the epilog itself read from the kernel log, after Sums.KernelSeq
	EventsLost    bool             // that log had been overwritten
	Findings      []check.Finding  // what the epilog's checks found about the job's GPUs
	Resolution    slurm.Resolution // whose GPUs, where there is no Job to say it
	ConfigBroken  bool             // gpuhooks.toml could not be used
	InJobCgroup   bool             // PrologFlags=RunInJob: slurmd does not tell the exit code
	NodeLost      bool             // finished after a reboot
	Now           time.Time
	Version       string
	Catalog       func() xid.Catalogue // parsed on the first event
}

// defaultTick stands in for the sampler's where nobody sampled.
const defaultTick = 5.0

// Build makes the record of a run. It does no I/O and never fails: what is not
// known is null and says why.
func Build(in Input) Record {
	if in.Sums != nil && in.Job != nil && in.Sums.BootID != in.Job.BootID {
		in.Sums = nil // another boot's
	}
	who := in.Epilog
	restart := who.RestartCount
	if in.Job != nil {
		restart = in.Job.Job.RestartCount // the epilog of a requeued run is told one more
	}
	r := Record{
		Schema: Schema, Version: in.Version, Time: in.Now.UTC(),
		Cluster: who.Cluster, Node: who.NodeName, BootID: in.BootID,
		Job:   job(who, restart),
		State: state(in),
		GPUs:  []GPU{}, Events: []Event{},
	}
	if in.Job != nil {
		r.BootID = in.Job.BootID
	}
	r.Start, r.End, r.Elapsed = span(in)
	reloaded := in.Job != nil && in.End != nil && in.EndDriverLoad != "" && in.Job.DriverLoad != "" && in.EndDriverLoad != in.Job.DriverLoad
	for _, d := range devices(in) {
		d.measure(r.Elapsed.Or(0), reloaded)
		r.GPUs = append(r.GPUs, d.record(r, in.Sums))
	}
	r.Events = events(in, r.GPUs)
	r.Quality = quality(in, r, reloaded)
	return r
}

func job(j slurm.Job, restart int) Job {
	out := Job{
		ID: j.ID, Restart: restart, User: Clean(j.User), Account: Clean(j.Account),
		Partition: Clean(j.Partition), QOS: Clean(j.QOS), NodeCount: j.NumNodes, NodeList: Clean(j.NodeList),
		UID: j.UID, SLUID: Clean(j.SLUID),
	}
	if j.HetJobID != 0 {
		out.HetJobID = gpu.Some(j.HetJobID)
	}
	return out
}

func state(in Input) State {
	code, okC := in.Epilog.ExitCode.Get()
	signal, okS := in.Epilog.ExitSignal.Get()
	s := State{Word: Ended}
	switch {
	case in.NodeLost:
		s.Word = NodeLost
	case in.InJobCgroup || !okC && !okS:
	case signal > 0:
		s = State{Signalled, gpu.Some(code), gpu.Some(signal)}
	case code != 0:
		s = State{Failed, gpu.Some(code), gpu.Some(0)}
	default:
		s = State{Completed, gpu.Some(0), gpu.Some(0)}
	}
	return s
}

// span is the time that the record stands for. A clock that was set back in
// between leaves the length unknown.
func span(in Input) (start, end gpu.Opt[time.Time], elapsed gpu.Opt[float64]) {
	switch {
	case in.Job != nil && !in.Job.Start.Time.IsZero():
		start = gpu.Some(in.Job.Start.Time.UTC())
	case in.Epilog.Start.IsSet():
		start = in.Epilog.Start
	case in.Sums != nil && !in.Sums.From.IsZero():
		start = gpu.Some(in.Sums.From.UTC())
	}
	switch {
	case in.End != nil && !in.End.Time.IsZero():
		end = gpu.Some(in.End.Time.UTC())
	case in.NodeLost && in.Sums != nil && !in.Sums.To.IsZero():
		end = gpu.Some(in.Sums.To.UTC())
	case !in.NodeLost:
		end = gpu.Some(in.Now.UTC())
	}
	s, okS := start.Get()
	e, okE := end.Get()
	if okS && okE && !e.Before(s) {
		elapsed = gpu.Some(e.Sub(s).Seconds())
	}
	return start, end, elapsed
}

// devices pairs start, end and sums by UUID: first the devices that the job
// started with, in their order, then any that only the end or Slurm knows.
func devices(in Input) []*device {
	var out []*device
	find := func(id gpu.Identity, mig *gpu.Instance) *device {
		n := &device{id: id, mig: mig}
		for _, d := range out {
			if d.place() == n.place() {
				return d
			}
		}
		out = append(out, n)
		return n
	}
	if in.Job != nil {
		for i := range in.Job.Start.Devices {
			p := &in.Job.Start.Devices[i]
			find(p.Identity, p.Instance).start = p
		}
	}
	if in.End != nil {
		for i := range in.End.Devices {
			p := &in.End.Devices[i]
			find(p.Identity, p.Instance).end = p
		}
	}
	res := resolution(in)
	for _, g := range slices.Concat(res.GPUs, res.Missing) {
		find(identity(g))
	}
	for _, d := range out {
		d.shared = res.Shared
		if in.Sums == nil {
			continue
		}
		for i := range in.Sums.Devices {
			if in.Sums.Devices[i].UUID == d.key() {
				d.sums = &in.Sums.Devices[i]
			}
		}
	}
	return out
}

// resolution is the prolog's where it ran, else the epilog's.
func resolution(in Input) slurm.Resolution {
	if in.Job != nil {
		return in.Job.Resolution
	}
	return in.Resolution
}

// identity is what Slurm's side knows of a GPU that NVML did not show.
func identity(g slurm.GPU) (gpu.Identity, *gpu.Instance) {
	id := gpu.Identity{Index: g.Index.Or(-1), Minor: g.Minor, UUID: g.UUID, PCI: g.PCI, Name: g.Name}
	if g.MIG == nil {
		return id, nil
	}
	return id, &gpu.Instance{GI: g.MIG.GI, CI: g.MIG.CI, UUID: g.MIG.UUID, Profile: g.MIG.Profile}
}

func quality(in Input, r Record, reloaded bool) Quality {
	tick := defaultTick
	if in.Sums != nil && in.Sums.Tick > 0 {
		tick = in.Sums.Tick
	}
	elapsed, known := r.Elapsed.Get()
	q := Quality{
		NoStart:          in.Job == nil,
		NoEnd:            in.End == nil,
		SamplerMissing:   in.Sums == nil || len(in.Sums.Devices) == 0,
		SamplerStale:     in.Sums != nil && !in.Sums.Final,
		EventsIncomplete: in.EventsLost || (in.Sums != nil && in.Sums.EventsIncomplete),
		ShortJob:         known && elapsed < 2*tick,
		NodeLost:         in.NodeLost,
		ConfigBroken:     in.ConfigBroken,
		DriverReloaded:   reloaded,
		Sharing:          string(resolution(in).Sharing),
	}
	if res := resolution(in); res.Verdict == slurm.CannotResolve {
		q.Unresolved = Clean(res.Reason)
	}
	for _, g := range r.GPUs {
		q.SharedGPU = q.SharedGPU || g.Shared
	}
	return q
}
