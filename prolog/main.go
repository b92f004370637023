// Gpu-prolog checks the GPUs of a job before it starts.
//
// Synopsis:
//
//	gpu-prolog [--config FILE]
//	gpu-prolog resolve [--gres-conf FILE] [--inventory FILE] [--json]
//	gpu-prolog config check|show [--config FILE]
//
// Description:
//
// Without a subcommand it is the hook that slurmd runs as Prolog=. It looks at
// the node through gpu-probe, judges the GPUs of the job, and either lets the job
// start (exit 0: its start counters are stored and the sampler runs) or drains the
// node with an exact reason and exits 1. In `observe` mode it only says what it
// would do. Whatever else happens, it exits 0 within 7 s.
package main

import (
	"os"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
)

func main() { os.Exit(cli.Main(newCommand)) }

func newCommand(env cli.Env) *cli.Command {
	var path string
	root := &cli.Command{
		Use:   "gpu-prolog",
		Short: "Check the GPUs of a job before it starts",
		Long: `Check the GPUs of a job before it starts: slurmd runs this as Prolog=.

EXIT STATUS
  0  the job may start (also whenever gpu-prolog could not do its work)
  1  a GPU of the job, or the node, is not fit for it; the node has been drained`,
		Example: `  # in slurm.conf, through the wrapper that is in scripts/
  Prolog=/etc/slurm/gpuhooks/prolog.sh
  PrologFlags=Alloc`,
		Args: cli.NoArgs,
		RunE: func(*cli.Command, []string) error { return cli.Exit(runHook(env, path)) },
	}
	root.PersistentFlags().StringVar(&path, "config", config.Path, "the configuration `FILE`")
	root.AddCommand(newResolve(env, &path), newConfig(env, &path))
	return root
}
