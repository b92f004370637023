package main

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/drain"
	"gpuhooks/internal/driver"
	"gpuhooks/internal/host"
	"gpuhooks/internal/node"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/verdict"
)

// limit is what a prolog takes at most, whatever happens: after 8 s Slurm tells
// users that it hangs.
const limit = 6900 * time.Millisecond

// shareable is how old another prolog's reading may be.
const shareable = 5 * time.Second

// hook is one prolog of a GPU job.
type hook struct {
	env    cli.Env
	log    *cli.Log
	cfg    config.Config
	job    slurm.Job
	node   string // this node's name in Slurm
	dir    runs.Dir
	name   runs.Name
	decide *cli.Decision
}

// runHook is what slurmd starts. It returns 1 only as a verdict.
func runHook(env cli.Env, path string) int {
	log := cli.NewLog(env)
	return cli.Hook(log, limit, func(d *cli.Decision) int {
		job, ok := cli.HookJob(log, env, path)
		if !ok {
			return cli.OK
		}
		cli.Go(log, prepare)
		cfg, _ := cli.HookConfig(log, path)
		if !cfg.Prolog.Enabled {
			return cli.OK
		}
		h := hook{
			env: env, log: log, cfg: cfg, job: job, decide: d, node: cli.NodeName(cfg, job.NodeName),
			dir: runs.Dir(cfg.Paths.Run), name: runs.Name{Job: job.ID, Restart: job.RestartCount},
		}
		kept := beside(log, func() {
			if err := config.Keep(path, config.LastGood(cfg.Paths.State)); err != nil && !os.IsNotExist(err) {
				log.Warnf("no copy of the configuration kept: %v", err)
			}
		})
		code := h.run()
		<-kept
		return code
	})
}

// prepare lets package json learn the types that this prolog reads and writes.
func prepare() {
	node.Prepare()
	// What cannot be written shows where it is to be.
	_, _ = json.Marshal(runs.Job{})
}

// run looks, judges, and acts or prepares the run.
func (h *hook) run() int {
	if node.WithoutGPUs(h.cfg, h.job.SlurmConf, h.node) {
		return cli.OK
	}
	boot, err := host.NewFS(h.cfg.Paths.Root).BootID()
	if err != nil {
		h.log.Warnf("boot id: %v", err)
	}
	live, err := h.dir.LiveJobs(boot)
	if err != nil {
		h.log.Warnf("%v", err)
	}
	look := node.Read(context.Background(), h.cfg, node.Options{
		Hook: verdict.Prolog, Tier: 1, NodeName: h.node, SlurmConf: h.job.SlurmConf,
		MaxAge: h.maxAge(), JobCgroup: node.OwnJob() != "", Now: h.env.Now,
	})
	res := look.Resolve(h.job)
	for _, w := range res.Warnings {
		h.log.Warnf("%s", w)
	}
	run := h.record(look, res)
	if live == nil {
		live = map[runs.Name]runs.Live{}
	}
	live[h.name] = runs.Live{SLUID: h.job.SLUID, Resolution: res}
	v, remember := look.Verdict(h.judged(res), runs.NodeJobs(live))
	if v.Action == verdict.Drain {
		remember()
		cli.Say(h.log, look, v)
		if h.drain(look, v) {
			return cli.Failed
		}
		if h.create(run) {
			h.sample()
		}
		return cli.OK
	}
	remembered := beside(h.log, remember)
	created := h.create(run)
	<-remembered
	cli.Say(h.log, look, v)
	if created {
		h.sample()
	}
	return cli.OK
}

// beside runs f beside what the caller does next; the channel closes at its end.
func beside(log *cli.Log, f func()) <-chan struct{} {
	done := make(chan struct{})
	cli.Go(log, func() {
		defer close(done)
		f()
	})
	return done
}

// maxAge bounds the age of a reading that may be shared: the counters of a run
// must have been read after the run before it ended.
func (h *hook) maxAge() time.Duration {
	list, err := h.dir.List()
	if err != nil {
		return 0
	}
	age := shareable
	for _, r := range list {
		if end := cmp.Or(r.Done, r.End); !end.IsZero() {
			age = min(age, h.env.Now().Sub(end))
		}
	}
	return max(age, 0)
}

// judged are the cards of the job. Where they cannot be found out the whole node
// is judged: the job may get any of them.
func (h *hook) judged(r slurm.Resolution) []string {
	if r.Verdict != slurm.CannotResolve {
		return runs.Cards(r)
	}
	h.log.Errorf("job %d: its GPUs cannot be found out: %s: judging the whole node", h.job.ID, r.Reason)
	h.log.Hintf("gpu-prolog resolve, with the job's environment")
	return nil
}

// record is the job.json of this run.
func (h *hook) record(look *node.Look, r slurm.Resolution) runs.Job {
	j := runs.Job{
		Schema: runs.JobSchema, BootID: look.BootID, DriverLoad: look.Reading.Node.Presence.DriverLoad,
		Job: h.job, Resolution: r, Start: runs.PointOf(&look.Reading.Node, r),
	}
	if k := look.Reading.Kernel; k != nil {
		j.KernelSeq = k.LastSeq
	}
	return j
}

// drain takes the node out of service and says whether the job is refused.
func (h *hook) drain(look *node.Look, v verdict.Verdict) bool {
	h.decide.Refuse() // also if Slurm does not answer in time: it then drains the node itself
	r := drain.OnVerdict(context.Background(), h.cfg, v, h.node, h.job.SlurmConf, look.BootID, h.env.Now())
	for _, text := range r.Texts {
		h.log.Errorf("%s", text)
	}
	if !r.Refuses() {
		h.decide.Accept()
		return false
	}
	mark := runs.Mark{BootID: look.BootID, Time: h.env.Now().UTC(), Text: v.Reason}
	if err := h.dir.Refuse(h.name, mark); err != nil {
		h.log.Warnf("job %d: its state could not be written: %v", h.job.ID, err)
	}
	return true
}

// create puts the run in place.
func (h *hook) create(run runs.Job) bool {
	err := h.dir.Create(h.name, run)
	if err != nil {
		h.log.Errorf("job %d: its state could not be written: %v: its record will lack the start counters", h.job.ID, err)
	}
	return err == nil
}

// sample sees that somebody samples the run, which is in place.
func (h *hook) sample() {
	state, err := driver.StartSampler(h.cfg, h.env.Now())
	if err != nil {
		h.log.Errorf("%s: %v: the job's record will lack samples", state, err)
	}
}
