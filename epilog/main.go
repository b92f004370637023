// Gpu-epilog writes the record of a job when it ends.
//
// Synopsis:
//
//	gpu-epilog [--config FILE]
//
// Description:
//
// It is the hook that slurmd runs as Epilog=. It reads the end counters of the
// job's GPUs, takes the final sums from the sampler, puts the job's record into
// the spool, and drains the node if the job left a GPU broken. It ends within
// 2.5 s and never fails a finished job: it exits 1 only where a broken node could
// not be drained because Slurm did not answer, so that Slurm drains it.
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
		Use:   "gpu-epilog",
		Short: "Write the record of a job when it ends",
		Long: `Write the record of a job when it ends, and drain the node if the job left a GPU
broken: slurmd runs this as Epilog=.

EXIT STATUS
  0  always, except:
  1  a GPU is broken and Slurm did not answer when the node was to be drained`,
		Example: `  # in slurm.conf, through the wrapper that is in scripts/
  Epilog=/etc/slurm/gpuhooks/epilog.sh`,
		Args: cli.NoArgs,
		RunE: func(*cli.Command, []string) error { return cli.Exit(runHook(env, path)) },
	}
	root.PersistentFlags().StringVar(&path, "config", config.Path, "the configuration `FILE`")
	return root
}
