// Gpu-healthcheck looks at the GPUs of a node.
//
// Synopsis:
//
//	gpu-healthcheck [--config FILE] [--tier 0|1] [--boot] [--gpu GPU]... [--check CHECK]...
//	                [--format text|json|csv] [--quiet] [--watch 5s]
//	gpu-healthcheck --cached [--max-age 5m] [--json | --quiet]
//	gpu-healthcheck ack [--gpu GPU]... [--reason TEXT] [--no-undrain] [--json]
//	gpu-healthcheck history [--gpu GPU]... [--json]
//	gpu-healthcheck gate [--wait 120s]
//	gpu-healthcheck list [--json]
//	gpu-healthcheck explain [CHECK | xid N | sxid N]
//	gpu-healthcheck xid --file LOG [--json]
//	gpu-healthcheck doctor [--json]
//
// Description:
//
// Without a subcommand it runs the checks of tiers 0 and 1 and prints a table.
// Started by slurmd as HealthCheckProgram= (which sets SLURMD_NODENAME and
// nothing else) it also acts: it drains the node if a check fails, takes back a
// drain of ours where the site wants that, and clears up the state of runs that
// Slurm does not know any more. It is done within 20 s.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
)

func main() { os.Exit(cli.Main(newCommand)) }

// options are the flags of a look.
type options struct {
	config string
	tier   int
	boot   bool
	gpus   []string // index, UUID, PCI address or device file; none is all
	checks []string // names; none is all
	format string   // text, json, csv
	quiet  bool
	watch  time.Duration // between two pages; 0 is one page
	fromCache
}

// check refuses what cannot be meant together.
func (o options) check() error {
	usage := func(format string, args ...any) error {
		return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case o.tier < 0 || o.tier > 1:
		return usage("--tier %d: is not 0 or 1", o.tier)
	case !slices.Contains([]string{"text", "json", "csv"}, o.format):
		return usage("--format %q: is not text, json or csv", o.format)
	case o.format != "text" && o.quiet:
		return usage("--format %s and --quiet exclude each other", o.format)
	case o.format != "text" && o.watch != 0:
		return usage("--format %s and --watch exclude each other", o.format)
	case o.watch != 0 && o.watch < time.Second:
		return usage("--watch %s: is less than 1s: each page asks the driver", o.watch)
	}
	return knownChecks(o.checks)
}

// plain says that nothing is asked for but the look: what slurmd starts.
func (o options) plain() bool {
	return o.format == "text" && o.watch == 0 && len(o.gpus) == 0 && len(o.checks) == 0
}

func newCommand(env cli.Env) *cli.Command {
	var o options
	var asJSON bool
	root := &cli.Command{
		Use:   "gpu-healthcheck",
		Short: "Look at the GPUs of this node",
		Long: `Look at the GPUs of this node and print what the checks find.

As HealthCheckProgram= (SLURMD_NODENAME is set, and no job) it also drains the
node, undrains it where that is configured, and clears up old runs; it then exits
1 only if the node is not fit for jobs.

EXIT STATUS
  0  all is well, or there are only warnings
  1  a check failed
  2  usage or configuration
  3  something could not be looked at`,
		Example: `  gpu-healthcheck
  gpu-healthcheck --gpu 3 --check nvlink
  gpu-healthcheck --json | jq .verdict.findings
  gpu-healthcheck explain xid 79`,
		Args: cli.NoArgs,
		RunE: func(*cli.Command, []string) error {
			if asJSON {
				o.format = "json"
			}
			if err := o.check(); err != nil {
				return err
			}
			if o.cached {
				return runCached(env, o)
			}
			if byslurmd(env) && o.plain() {
				return cli.Exit(runHook(env, o))
			}
			return runLook(env, o)
		},
	}
	root.PersistentFlags().StringVar(&o.config, "config", config.Path, "the configuration `FILE`")
	f := root.Flags()
	f.IntVar(&o.tier, "tier", 1, "highest `TIER` of checks: 0 asks /dev, /proc, PCI and the kernel log, 1 also the driver")
	f.BoolVar(&o.boot, "boot", false, "before slurmd starts: give the driver 30 s for its first answer")
	f.StringArrayVar(&o.gpus, "gpu", nil, "only this `GPU`: index, UUID, PCI address or device file; may be repeated")
	f.StringArrayVar(&o.checks, "check", nil, "only what this `CHECK` says; may be repeated")
	f.StringVar(&o.format, "format", "text", "`FORMAT` of the output: text, json or csv; json and csv only look, whoever asks")
	f.BoolVar(&asJSON, "json", false, "the same as --format json")
	f.BoolVar(&o.quiet, "quiet", false, "print only what is not well")
	f.DurationVar(&o.watch, "watch", 0, "look again after each `TIME` (5s), until interrupted")
	o.fromCache.flags(f)
	root.AddCommand(newList(env), newExplain(env, &o), newXID(env, &o), newDoctor(env, &o),
		newAck(env, &o), newGate(env, &o), newHistory(env, &o), newBaseline(env, &o))
	return root
}

// byslurmd says that slurmd started us and not a person: the node's name is set
// and no job's id, as it would be in a job's shell.
func byslurmd(env cli.Env) bool {
	return lookup(env.Environ, "SLURMD_NODENAME") != "" && lookup(env.Environ, "SLURM_JOB_ID") == ""
}

func lookup(environ []string, key string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}
