package main

import (
	"bytes"
	"context"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/node"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/verdict"
)

// bootDeadline is what a boot gate gives the driver for its first answer: without
// persistence it initialises every card.
const bootDeadline = 30 * time.Second

// looked is one look at the node with its verdict.
type looked struct {
	name    string // of the node in Slurm
	look    *node.Look
	verdict verdict.Verdict
}

// look reads and judges the whole node.
func look(env cli.Env, c config.Config, o options) looked {
	name := cli.NodeName(c, lookup(env.Environ, "SLURMD_NODENAME"))
	opt := node.Options{
		Hook: verdict.HealthCheck, NodeName: name, SlurmConf: lookup(env.Environ, "SLURM_CONF"), Tier: o.tier, Now: env.Now,
	}
	if o.boot {
		opt.Deadline = bootDeadline
	}
	var problems []error
	boot, err := host.NewFS(c.Paths.Root).BootID()
	if err != nil {
		problems = append(problems, err)
	}
	live, err := runs.Dir(c.Paths.Run).LiveJobs(boot)
	if err != nil {
		problems = append(problems, err)
	}
	l := node.Read(context.Background(), c, opt)
	v := l.Judge(nil, runs.NodeJobs(live))
	l.Problems = append(problems, l.Problems...)
	return looked{name: name, look: l, verdict: v}
}

// runLook is what a person starts: it looks, prints, and changes nothing in Slurm.
func runLook(env cli.Env, o options) error {
	c, err := cli.LoadConfig(o.config)
	if err != nil {
		return err
	}
	l := look(env, c, o)
	warn(cli.NewLog(env), l.look)
	if o.json {
		err = cli.WriteJSON(env.Stdout, l.result())
	} else {
		var b bytes.Buffer
		l.print(&b, o.quiet)
		_, err = env.Stdout.Write(b.Bytes())
	}
	if err != nil {
		return err
	}
	return cli.Exit(status(l.verdict))
}

// status is what the verdict means for a person's exit status.
func status(v verdict.Verdict) int {
	switch {
	case v.Outcome == check.Fail, v.Action != verdict.None:
		return cli.Failed
	case v.Outcome == check.Error:
		return cli.Blind
	}
	return cli.OK
}

// warn logs what the reading has to tell beside the verdict.
func warn(log *cli.Log, l *node.Look) {
	for _, p := range l.Problems {
		log.Warnf("%v", p)
	}
	if r := l.Reading; r.Why != "" {
		log.Warnf("gpu-probe: %s: %s", r.Answer, r.Why)
		for line := range bytes.Lines([]byte(r.Stderr)) {
			log.Warnf("gpu-probe said: %s", bytes.TrimSpace(line))
		}
	}
}

// resultSchema is the format of --json.
const resultSchema = "gpuhooks.health/1"

// result is what --json prints.
type result struct {
	Schema   string          `json:"schema"`
	Node     string          `json:"node"`
	Time     time.Time       `json:"time"`
	BootID   string          `json:"boot_id"`
	First    bool            `json:"first_look"` // since boot or driver load
	Seconds  float64         `json:"seconds"`    // that the probe took
	Driver   gpu.Driver      `json:"driver"`
	Verdict  verdict.Verdict `json:"verdict"`
	GPUs     []gpu.GPU       `json:"gpus"`
	Faults   []gpu.Fault     `json:"faults"`
	Problems []string        `json:"problems"`
}

func (l looked) result() result {
	n := l.look.Reading.Node
	r := result{
		Schema: resultSchema, Node: l.name, Time: n.Time, BootID: l.look.BootID, First: l.look.First,
		Seconds: l.look.Reading.Elapsed.Seconds(), Driver: n.Driver, Verdict: l.verdict,
		GPUs: append([]gpu.GPU{}, n.GPUs...), Faults: append([]gpu.Fault{}, n.Faults...), Problems: []string{},
	}
	for _, p := range l.look.Problems {
		r.Problems = append(r.Problems, p.Error())
	}
	return r
}
