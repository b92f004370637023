package main

import (
	"bytes"
	"context"
	"slices"
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
	gpus    []gpu.GPU // of the reading, those that --gpu names
	verdict verdict.Verdict
}

// look reads and judges the whole node.
func look(env cli.Env, c config.Config, o options) looked {
	l, _ := lookAt(env, c, o, nil) // only a choice can be wrong
	return l
}

// lookAt reads the node and judges the GPUs that --gpu names; none is all. The
// error is a GPU that is not there.
func lookAt(env cli.Env, c config.Config, o options, gpus []string) (looked, error) {
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
	only, err := chooseGPUs(l.Reading.Node.GPUs, gpus)
	if err != nil {
		return looked{}, err
	}
	v := l.Judge(only, runs.NodeJobs(live))
	l.Problems = append(problems, l.Problems...)
	chosen := slices.DeleteFunc(slices.Clone(l.Reading.Node.GPUs), func(g gpu.GPU) bool {
		return only != nil && !slices.Contains(only, g.UUID)
	})
	return looked{name: name, look: l, gpus: chosen, verdict: v}, nil
}

// runLook is what a person starts: it looks, prints, and changes nothing in
// Slurm; with --watch again and again until it is interrupted.
func runLook(env cli.Env, o options) error {
	c, err := cli.LoadConfig(o.config)
	if err != nil {
		return err
	}
	for {
		l, err := lookAt(env, c, o, o.gpus)
		if err != nil {
			return err
		}
		if len(o.checks) > 0 {
			l.verdict = l.verdict.Only(o.checks)
		}
		if o.watch == 0 {
			warn(cli.NewLog(env), l.look)
		}
		page, err := l.page(o)
		if err != nil {
			return err
		}
		if _, err := env.Stdout.Write(page); err != nil {
			return err
		}
		if o.watch == 0 {
			return cli.Exit(status(l.verdict))
		}
		time.Sleep(o.watch)
	}
}

// clearScreen is what --watch begins a page with.
const clearScreen = "\x1b[H\x1b[2J"

// page is what is printed of a look.
func (l looked) page(o options) ([]byte, error) {
	var b bytes.Buffer
	switch o.format {
	case "json":
		if err := cli.WriteJSON(&b, l.result()); err != nil {
			return nil, err
		}
	case "csv":
		l.csv(&b)
	default:
		if o.watch > 0 {
			b.WriteString(clearScreen + l.look.Reading.Node.Time.Format(time.RFC3339) + "\n")
		}
		l.print(&b, o.quiet)
	}
	return b.Bytes(), nil
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
	Host     *gpu.Host       `json:"host,omitempty"` // what surrounds the GPUs
	Faults   []gpu.Fault     `json:"faults"`
	Problems []string        `json:"problems"`
}

func (l looked) result() result {
	n := l.look.Reading.Node
	r := result{
		Schema: resultSchema, Node: l.name, Time: n.Time, BootID: l.look.BootID, First: l.look.First,
		Seconds: l.look.Reading.Elapsed.Seconds(), Driver: n.Driver, Verdict: l.verdict,
		GPUs: append([]gpu.GPU{}, l.gpus...), Host: n.Host, Faults: append([]gpu.Fault{}, n.Faults...), Problems: []string{},
	}
	for _, p := range l.look.Problems {
		r.Problems = append(r.Problems, p.Error())
	}
	return r
}
