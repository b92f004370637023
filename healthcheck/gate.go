package main

import (
	"fmt"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

// between is how long the gate waits between two looks.
const between = 3 * time.Second

func newGate(env cli.Env, o *options) *cli.Command {
	wait := 120 * time.Second
	c := &cli.Command{
		Use:   "gate",
		Short: "Look at the node before slurmd starts",
		Long: `Look at the node before slurmd starts: gpuhooks-gate.service runs it. It gives the
driver 30 s for its first answer, waits until devices and NVLink fabric are there, and
runs the checks of tiers 0 and 1. If they fail, it drains the node, which Slurm does
while slurmd is down, so that it comes up drained with the reason. If Slurm does not
answer either, the health check that slurmd runs at its start does so.

EXIT STATUS
  0  always, so that slurmd starts`,
		Args: cli.NoArgs,
		RunE: func(*cli.Command, []string) error {
			if wait < 0 || wait > time.Hour {
				return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--wait %s: is not between 0 and 1h", wait)}
			}
			g := *o
			g.tier, g.boot, g.quiet = 1, true, true
			asHook(env, g, wait+bootLimit, func(c config.Config) looked { return await(env, c, g, wait) })
			return nil
		},
	}
	c.Flags().DurationVar(&wait, "wait", wait, "for devices and fabric at most this `TIME`; the look and the drain take 40 s more at most")
	return c
}

// await looks until the node is whole or the time is up.
func await(env cli.Env, c config.Config, o options, wait time.Duration) looked {
	log := cli.NewLog(env)
	until := env.Now().Add(wait)
	for said := ""; ; time.Sleep(between) {
		l := look(env, c, o)
		why := notYet(l.verdict)
		if why == "" || env.Now().Add(between).After(until) {
			return l
		}
		if why != said {
			log.Infof("waiting: %s", why)
			said = why
		}
	}
}

// settling are the checks that may fail for a while after boot: drivers load,
// daemons start, fabrics and links train. It is no failure yet while the driver
// and the fabric have only not answered.
var settling = map[string]check.Outcome{
	"probe-answer": check.Error, "fabric-state": check.Error, "driver-loaded": check.Fail, "device-nodes": check.Fail, "device-caps": check.Fail,
	"pci-devices": check.Fail, "gpu-count": check.Fail, "daemons": check.Fail, "rdma-port": check.Fail,
}

// notYet says what may still come; "" when nothing will, because all is there or
// because a card is lost.
func notYet(v verdict.Verdict) string {
	why := ""
	for _, f := range v.Findings {
		switch {
		case f.Check == "gpu-lost" && f.Outcome == check.Fail, v.Answer == gpu.AnswerStuck:
			return ""
		case why == "" && settling[f.Check] != "" && !settling[f.Check].Worse(f.Outcome):
			why = f.Line()
		}
	}
	return why
}
