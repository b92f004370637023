package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/drain"
	"gpuhooks/internal/node"
	"gpuhooks/internal/slurmctl"
	"gpuhooks/internal/verdict"
)

// limit is what a HealthCheckProgram takes at most: Slurm kills it after 60 s,
// and slurmd registers only after its first one. A boot gate waits longer for the
// driver.
const (
	limit     = 20 * time.Second
	bootLimit = bootDeadline + 10*time.Second

	slurmdLimit = 5 * time.Second // for slurmd -G, which starts the driver once more

	frozen = 10 * time.Second // beyond its limit: a health check that still holds the lock then is not waited for
)

// hook is one run as HealthCheckProgram.
type hook struct {
	env cli.Env
	log *cli.Log
	cfg config.Config
	looked
	braked bool // the node would be drained, but too many others are
}

// runHook looks, drains, undrains and clears up. It returns 1 only if the node is
// not fit for jobs.
func runHook(env cli.Env, o options) int {
	budget := limit
	if o.boot {
		budget = bootLimit
	}
	return asHook(env, o, budget, func(c config.Config) looked { return look(env, c, o) })
}

// asHook does what follows from a look, within its budget, and whatever happens.
func asHook(env cli.Env, o options, budget time.Duration, look func(config.Config) looked) int {
	log := cli.NewLog(env)
	return cli.Hook(log, budget, func(d *cli.Decision) int {
		if config.Off(o.config) {
			log.Infof("switched off: the file off lies beside %s", o.config)
			return cli.OK
		}
		cfg, _ := cli.HookConfig(log, o.config)
		for _, err := range cfg.UnknownChecks(o.config, check.Names()) {
			log.Warnf("%v", err)
		}
		if !cfg.HealthCheck.Enabled || node.WithoutGPUs(cfg, lookup(env.Environ, "SLURM_CONF"), cli.NodeName(cfg, lookup(env.Environ, "SLURMD_NODENAME"))) {
			return cli.OK
		}
		release, alone, err := (node.Store{Dir: cfg.Paths.Run}).Alone("healthcheck.lock", budget+frozen, env.Now())
		if err != nil {
			log.Warnf("%v", err)
		}
		if !alone {
			log.Infof("another health check is at work: it will say what it finds")
			return cli.OK
		}
		defer release()
		h := hook{env: env, log: log, cfg: cfg, looked: look(cfg)}
		return h.act(d, o)
	})
}

// act says what was found and does what follows from it.
func (h *hook) act(d *cli.Decision, o options) int {
	cli.Say(h.log, h.look, h.verdict)
	code := cli.OK
	switch h.verdict.Action {
	case verdict.Drain:
		d.Refuse()
		if h.drain() {
			code = cli.Failed
		} else {
			d.Accept()
		}
	case verdict.None:
		h.undrain()
	}
	if h.verdict.Action != verdict.Drain && h.verdict.Outcome == check.Fail { // drain has done it
		h.warn(drain.RecordFaults(h.cfg, h.verdict, false, h.look.BootID))
	}
	var b bytes.Buffer
	h.print(&b, o.quiet)
	if _, err := h.env.Stdout.Write(b.Bytes()); err != nil {
		h.log.Warnf("%v", err)
	}
	h.export()
	h.sweep()
	h.learnSlurm()
	h.learnDevices()
	if err := config.Keep(o.config, config.LastGood(h.cfg.Paths.State)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.log.Warnf("no copy of the configuration kept: %v", err)
	}
	return code
}

// learnSlurm has the node remember Slurm's version, where the configuration does
// not tell: prologs may not ask, and by it they know the order of a detected list.
func (h *hook) learnSlurm() {
	if h.cfg.Slurm.Version != "" {
		return
	}
	v, err := client(h.cfg, h.env).Version(context.Background())
	if err != nil {
		h.log.Infof("Slurm's version: %v", err)
		return
	}
	if v.String() == h.look.Memory.Slurm {
		return
	}
	if err := (node.Store{Dir: h.cfg.Paths.Run}).Update(h.look.BootID, func(m *node.Memory) { m.Slurm = v.String() }); err != nil {
		h.log.Warnf("the node's memory: %v", err)
	}
}

// learnDevices has slurmd -G tell the detected device list, once a start of slurmd.
func (h *hook) learnDevices() {
	c := client(h.cfg, h.env)
	c.Slurmd, c.Timeout = h.cfg.Slurm.Slurmd, slurmdLimit
	if err := h.look.AskSlurmd(context.Background(), c); err != nil {
		h.log.Infof("Slurm's device list: %v", err)
	}
}

// client is for Slurm's commands. slurmd tells a health check no SLURM_CONF, but
// a wrapper may.
func client(c config.Config, env cli.Env) slurmctl.Client {
	return drain.Client(c, lookup(env.Environ, "SLURM_CONF"))
}
