package main

import (
	"bytes"
	"fmt"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/host"
	"gpuhooks/internal/node"
	"gpuhooks/internal/verdict"
)

// fromCache says that the last verdict will do.
type fromCache struct {
	cached bool
	maxAge time.Duration
}

func (o *fromCache) flags(f *cli.Flags) {
	f.BoolVar(&o.cached, "cached", false, "print the last verdict and do not touch the driver: a few milliseconds")
	f.DurationVar(&o.maxAge, "max-age", 5*time.Minute, "with --cached: how old it may be, `TIME`")
}

// cachedResult is what --cached --json prints.
type cachedResult struct {
	node.Cached
	Age float64 `json:"age_seconds"`
}

// runCached prints the last verdict on the whole node. Who asks often (NHC,
// monitoring, a script before each step) need not disturb the driver.
func runCached(env cli.Env, o options) error {
	if len(o.gpus) > 0 || len(o.checks) > 0 || o.watch != 0 || o.format == "csv" {
		return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--cached is the verdict on the whole node: without --gpu, --check, --watch and csv")}
	}
	c, err := cli.LoadConfig(o.config)
	if err != nil {
		return err
	}
	boot, err := host.NewFS(c.Paths.Root).BootID()
	if err != nil {
		return err
	}
	now := env.Now()
	kept, ok := node.Store{Dir: c.Paths.Run}.Cached(boot, node.Digest(c), now, o.maxAge)
	if !ok {
		return &cli.ExitError{
			Code: cli.Blind, Err: fmt.Errorf("no verdict of the last %s by this configuration", o.maxAge),
			Hint: "gpu-healthcheck looks anew",
		}
	}
	v := kept.Verdict
	age := now.Sub(v.Time)
	if o.format == "json" {
		err = cli.WriteJSON(env.Stdout, cachedResult{kept, age.Seconds()})
	} else {
		var b bytes.Buffer
		if !o.quiet || v.Outcome.Worse(check.Pass) {
			fmt.Fprintf(&b, "%s: %s, %s ago, tier %d\n", cli.Clean(cli.NodeName(c, lookup(env.Environ, "SLURMD_NODENAME"))), inWords(v), age.Round(time.Second), v.Tier)
		}
		for _, f := range v.Findings {
			fmt.Fprintln(&b, "  "+cli.Clean(f.Line()))
		}
		_, err = env.Stdout.Write(b.Bytes())
	}
	if err != nil {
		return err
	}
	return cli.Exit(status(v))
}

// inWords is a verdict in a word or two.
func inWords(v verdict.Verdict) string {
	s := string(v.Outcome)
	switch v.Action {
	case verdict.Drain:
		s += ", drain"
	case verdict.WouldDrain:
		s += ", would drain"
	}
	return s
}
