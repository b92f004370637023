package main

import (
	"context"
	"errors"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/drain"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/node"
	"gpuhooks/internal/record"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/spool"
	"gpuhooks/internal/verdict"
	"gpuhooks/internal/xid"
)

// An epilog ends within 2.5 s: until then the whole node takes no jobs. What
// remains for the record when Slurm is slow to answer is reserved.
const (
	limit    = 2400 * time.Millisecond
	reserved = 300 * time.Millisecond
)

// hook is one epilog of a GPU job.
type hook struct {
	env    cli.Env
	log    *cli.Log
	cfg    config.Config
	broken bool // the configuration is not that of the file
	job    slurm.Job
	node   string // this node's name in Slurm
	boot   string
	dir    runs.Dir
	began  time.Time
	decide *cli.Decision
}

// runHook is what slurmd starts.
func runHook(env cli.Env, path string) int {
	log := cli.NewLog(env)
	began := time.Now()
	return cli.Hook(log, limit, func(d *cli.Decision) int {
		job, ok := cli.HookJob(log, env, path)
		if !ok {
			return cli.OK
		}
		cfg, broken := cli.HookConfig(log, path)
		if !cfg.Epilog.Enabled {
			return cli.OK
		}
		name := cli.NodeName(cfg, job.NodeName)
		if node.WithoutGPUs(cfg, job.SlurmConf, name) {
			return cli.OK
		}
		h := hook{
			env: env, log: log, cfg: cfg, broken: broken, job: job, began: began, decide: d,
			node: name, dir: runs.Dir(cfg.Paths.Run),
		}
		var err error
		if h.boot, err = host.NewFS(cfg.Paths.Root).BootID(); err != nil {
			log.Warnf("boot id: %v", err)
		}
		return h.run()
	})
}

// run closes the job's run: end counters, verdict, record.
func (h *hook) run() int {
	list, err := h.dir.List()
	if err != nil {
		h.log.Warnf("%v", err)
	}
	own := runs.Name{Job: h.job.ID, Restart: h.job.RestartCount}
	run, found := runs.Choose(list, own)
	switch found {
	case runs.FoundDone:
		return cli.OK // this epilog has run before
	case runs.FoundRefused:
		h.done(run.Name)
		return cli.OK // the prolog has said why
	case runs.FoundNone:
		run.Name = own
	}
	in := record.Input{Epilog: h.job, ConfigBroken: h.broken, BootID: h.boot, Version: cli.Version(), Catalog: h.catalogue}
	if found == runs.FoundOpen {
		h.readJob(run.Name, &in)
	}
	final := h.askSampler(run.Name, in.Job != nil && !in.NodeLost)
	look := h.look(in.Job, run.Name)
	in.Now = h.env.Now()
	h.fill(&in, look)
	v := look.Judge(h.judged(in), h.others(run.Name))
	cli.Say(h.log, look, v)
	for _, f := range v.Findings {
		in.Findings = append(in.Findings, f.Finding)
	}
	code := cli.OK
	if v.Action == verdict.Drain {
		code = h.drain(look, v)
	}
	if in.Sums = final(); in.Sums != nil {
		in.Events = after(in.Events, in.Sums.KernelSeq)
	}
	if h.put(record.Build(in)) {
		h.done(run.Name)
	}
	h.sweep(list)
	return code
}

// sweep removes runs that were closed long ago, also where nobody runs the
// health check. Only that one may ask Slurm about the others.
func (h *hook) sweep(list []runs.Run) {
	unknown := func(uint32) (known, sure bool) { return false, false }
	remove, _ := runs.Sweep(list, h.env.Now(), unknown)
	for _, r := range remove[:min(len(remove), 100)] {
		if err := h.dir.Remove(r.Name); err != nil {
			h.log.Warnf("run %s: %v", r.Name, err)
			return
		}
	}
}

// readJob takes what the prolog left. What cannot be used is said and left out.
func (h *hook) readJob(n runs.Name, in *record.Input) {
	j, err := h.dir.ReadJob(n, h.boot)
	switch {
	case err == nil:
		in.Job = &j
	case errors.Is(err, runs.ErrOtherBoot):
		in.Job, in.NodeLost = &j, true
		h.log.Warnf("job %d: %v: the node was rebooted while it ran", h.job.ID, err)
	default:
		h.log.Warnf("job %d: no start counters: %v", h.job.ID, err)
	}
}

// look reads the end counters, and of the kernel log what the sampler has not
// read for this run.
func (h *hook) look(j *runs.Job, n runs.Name) *node.Look {
	opt := node.Options{
		Hook: verdict.Epilog, Tier: 1, NodeName: h.node, SlurmConf: h.job.SlurmConf,
		JobCgroup: node.OwnJob() != "", Now: h.env.Now,
	}
	if j != nil {
		seq := j.KernelSeq
		if s, err := h.dir.ReadSums(n, h.boot); err == nil {
			seq = max(seq, s.KernelSeq)
		}
		opt.KernelSeq = gpu.Some(seq)
	}
	return node.Read(context.Background(), h.cfg, opt)
}

// fill puts the look into the record's input.
func (h *hook) fill(in *record.Input, look *node.Look) {
	in.InJobCgroup = node.OwnJob() != ""
	if in.BootID == "" {
		in.BootID = look.BootID
	}
	n := &look.Reading.Node
	in.EndDriverLoad = n.Presence.DriverLoad
	in.Resolution = look.Resolve(h.job)
	res := in.Resolution
	if in.Job != nil {
		res = in.Job.Resolution
	}
	if len(n.GPUs) > 0 && !in.NodeLost {
		p := runs.PointOf(n, res)
		in.End = &p
	}
	k := look.Reading.Kernel
	if k == nil || k.Fault != nil {
		in.EventsLost = true
		return
	}
	in.EventsLost = k.Lost > 0
	if in.Job != nil {
		in.Events = after(k.Events, in.Job.KernelSeq)
	}
}

// after leaves the events with a record behind that number.
func after(events []xid.Event, seq uint64) []xid.Event {
	var out []xid.Event
	for _, e := range events {
		if e.Last > seq {
			out = append(out, e)
		}
	}
	return out
}

// judged are the cards of the job, as its prolog found them; nil is all.
func (h *hook) judged(in record.Input) []string {
	res := in.Resolution
	if in.Job != nil {
		res = in.Job.Resolution
	}
	if res.Verdict == slurm.CannotResolve {
		h.log.Errorf("job %d: its GPUs cannot be found out: %s: judging the whole node", h.job.ID, res.Reason)
		return nil
	}
	return runs.Cards(res)
}

// others are the jobs that still run here.
func (h *hook) others(own runs.Name) node.Jobs {
	live, err := h.dir.LiveJobs(h.boot)
	if err != nil {
		h.log.Warnf("%v", err)
	}
	on := runs.OnGPUs(live)
	delete(live, own)
	jobs := runs.NodeJobs(live)
	jobs.OnGPU = on
	return jobs
}

// drain takes the node out of service. The job is over, so only a Slurm that
// does not answer makes the epilog fail: Slurm then drains the node itself.
func (h *hook) drain(look *node.Look, v verdict.Verdict) int {
	h.decide.Refuse()
	ctx, cancel := context.WithDeadline(context.Background(), h.began.Add(limit-reserved))
	defer cancel()
	r := drain.OnVerdict(ctx, h.cfg, v, h.node, h.job.SlurmConf, look.BootID, h.env.Now())
	for _, text := range r.Texts {
		h.log.Errorf("%s", text)
	}
	if r.Outcome == drain.NoAnswer {
		return cli.Failed
	}
	h.decide.Accept()
	return cli.OK
}

// put spools the record and says whether it is on disk.
func (h *hook) put(r record.Record) bool {
	p, err := spool.Put(h.cfg.Paths.Spool, h.cfg.Paths.Fallback, r)
	switch {
	case err != nil:
		h.log.Errorf("job %d: its record could not be written: %v", h.job.ID, err)
		h.log.Hintf("[paths] spool and fallback say where records go")
		return false
	case p.Fallback:
		h.log.Errorf("job %d: its record is in %s, because the spool cannot be written: %v", h.job.ID, p.Path, p.Cause)
	}
	return true
}

// done closes the run.
func (h *hook) done(n runs.Name) {
	if err := h.dir.MarkDone(n, runs.Mark{BootID: h.boot, Time: h.env.Now().UTC()}); err != nil {
		h.log.Warnf("job %d: its run could not be closed: %v", h.job.ID, err)
	}
}

// catalogue is the XID catalogue, with the site's own over it.
func (h *hook) catalogue() xid.Catalogue {
	c, err := node.Catalogue(h.cfg.Paths.XID)
	if err != nil {
		h.log.Warnf("the XID catalogue: %v", err)
	}
	return c
}
