package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/record"
	"gpuhooks/internal/report"
	"gpuhooks/internal/spool"
)

type reportOptions struct {
	dirs   []string
	format string
	json   bool
}

func newReport(env cli.Env, path *string) *cli.Command {
	var o reportOptions
	c := &cli.Command{
		Use:   "report JOBID",
		Short: "Show what one job did with its GPUs",
		Long: `Show what one job did with its GPUs: how busy they were, what was not used,
energy, errors, and what limits these figures. JOBID is 4711, or 120_3 for a task
of an array. Without --dir the records of this node are read; give the directories
of several nodes, or one that holds them all, to see a job of several nodes whole.

EXIT STATUS
  0  the page was printed
  1  there is no record of this job
  2  usage or configuration
  3  the records could not be read, or Slurm could not be asked`,
		Example: `  gpu-accounting report 4711
  gpu-accounting report 120_3 --dir /shared/gpuhooks/node01 --dir /shared/gpuhooks/node02
  gpu-accounting report 4711 --json | jq .totals.energy_joules`,
		Args: cli.ExactArgs(1),
		RunE: func(cmd *cli.Command, args []string) error {
			return runReport(cmd, env, *path, o, args[0])
		},
	}
	c.Flags().StringArrayVar(&o.dirs, "dir", nil, "read records from this `DIR`, or the spool DIR; may be repeated")
	c.Flags().StringVar(&o.format, "format", "text", "`FORM` of the report: text or json")
	c.Flags().BoolVar(&o.json, "json", false, "the same as --format json")
	return c
}

func runReport(cmd *cli.Command, env cli.Env, path string, o reportOptions, spec string) error {
	if o.json {
		o.format = "json"
	}
	if o.format != "text" && o.format != "json" {
		return usage(fmt.Errorf("--format: %q: want text or json", o.format), "")
	}
	cfg, err := config.Load(path, cmd.Flags().Changed("config"))
	if err != nil {
		return usage(err, "gpu-prolog config check")
	}
	id, err := jobID(cmd.Context(), cfg, spec)
	if err != nil {
		return err
	}
	if len(o.dirs) == 0 {
		o.dirs = []string{cfg.Paths.Spool, cfg.Paths.Fallback}
	}
	records, err := collect(cli.NewLog(env), o.dirs, id)
	if len(records) == 0 {
		return missing(env, cfg, o.dirs, spec, id, err)
	}
	opts := report.Options{Name: spec, Zone: env.Now().Location(), Color: color(env)}
	if o.format == "json" {
		return cli.WriteJSON(env.Stdout, report.JSON(records, opts))
	}
	_, err = fmt.Fprint(env.Stdout, report.Text(records, opts))
	return err
}

func usage(err error, hint string) error {
	return &cli.ExitError{Code: cli.Usage, Err: err, Hint: hint}
}

// collect reads the job's records from all directories. What could not be read
// is a warning; the error is that of directories.
func collect(log *cli.Log, dirs []string, id uint32) ([]record.Record, error) {
	var out []record.Record
	var failed error
	for _, dir := range dirs {
		found, bad := spool.Find(dir, id)
		out = append(out, found...)
		for _, p := range bad {
			log.Warnf("%s: %v", p.Path, p.Err)
			if errors.Is(p.Err, fs.ErrPermission) {
				failed = fmt.Errorf("%s: %w", p.Path, fs.ErrPermission)
			}
		}
	}
	return out, failed
}

// color says whether stdout is a terminal that wants colours (no-color.org).
func color(env cli.Env) bool {
	f, ok := env.Stdout.(*os.File)
	if !ok {
		return false
	}
	for _, kv := range env.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if (name == "NO_COLOR" && value != "") || (name == "TERM" && value == "dumb") {
			return false
		}
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
