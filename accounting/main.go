// Gpu-accounting shows what jobs did with their GPUs.
//
// Synopsis:
//
//	gpu-accounting report [--dir DIR]... [--json] JOBID
//
// Description:
//
// It reads the records that gpu-epilog has written, one per run of a job and
// node, and makes one page of them. It changes nothing.
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
		Use:     "gpu-accounting",
		Short:   "Show what jobs did with their GPUs",
		Example: "  gpu-accounting report 4711",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cli.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&path, "config", config.Path, "the configuration `FILE`")
	root.AddCommand(newReport(env, &path))
	return root
}
