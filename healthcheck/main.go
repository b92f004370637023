// Gpu-healthcheck looks at the GPUs of a node.
//
// Synopsis:
//
//	gpu-healthcheck [--config FILE] [--tier 0|1] [--boot] [--json | --quiet]
//	gpu-healthcheck explain [CHECK | xid N]
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
	"strings"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
)

func main() { os.Exit(cli.Main(newCommand)) }

// options are the flags of a look.
type options struct {
	config string
	tier   int
	boot   bool
	json   bool
	quiet  bool
}

func newCommand(env cli.Env) *cli.Command {
	var o options
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
  gpu-healthcheck --json | jq .verdict.findings
  gpu-healthcheck explain xid 79`,
		Args: cli.NoArgs,
		RunE: func(*cli.Command, []string) error {
			if o.tier < 0 || o.tier > 1 {
				return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--tier %d: is not 0 or 1", o.tier)}
			}
			if o.json && o.quiet {
				return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--json and --quiet exclude each other")}
			}
			if byslurmd(env) && !o.json {
				return cli.Exit(runHook(env, o))
			}
			return runLook(env, o)
		},
	}
	root.PersistentFlags().StringVar(&o.config, "config", config.Path, "the configuration `FILE`")
	f := root.Flags()
	f.IntVar(&o.tier, "tier", 1, "highest `TIER` of checks: 0 asks /dev, /proc, PCI and the kernel log, 1 also the driver")
	f.BoolVar(&o.boot, "boot", false, "before slurmd starts: give the driver 30 s for its first answer")
	f.BoolVar(&o.json, "json", false, "print JSON; only look, whoever asks")
	f.BoolVar(&o.quiet, "quiet", false, "print only what is not well")
	root.AddCommand(newExplain(env, &o), newDoctor(env, &o))
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
