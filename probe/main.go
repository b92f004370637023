//go:build cgo

// gpu-probe is the one program that touches the NVIDIA driver. It reads and
// measures, prints what it found as JSON lines, and knows nothing of jobs,
// policies or Slurm. The other programs start it; a driver that crashes or
// hangs takes only this process.
//
//	gpu-probe read   one look at the node (driver.Line, one a line)
//	gpu-probe sample accumulates activity while jobs run (one per node)
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"gpuhooks/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, time.Now())) }

// The commands and what follows each.
var usage = `usage: gpu-probe read   [--root DIR] [--nvml LIB] [--identity FILE] [--after SEQ] [--tier 0|1]
                        [--gpus UUID,UUID] [--counters-only] [--host] [--dirs DIR,DIR] [--inventory]
       gpu-probe sample [--run DIR] [--root DIR] [--nvml LIB] [--tick 5s] [--series N] [--spool DIR]
       gpu-probe --version
`

// run is main with everything from outside given.
func run(args []string, stdout, stderr *os.File, start time.Time) int {
	var err error
	switch {
	case len(args) == 0:
		fmt.Fprint(stderr, usage)
		return cli.Usage
	case args[0] == "read":
		err = read(args[1:], stdout, start)
	case args[0] == "sample":
		err = sample(args[1:], stderr)
	case args[0] == "accept": // for scripts/gpu-acceptance
		err = accept(args[1:], stdout)
	case args[0] == "--version" || args[0] == "version":
		_, err = fmt.Fprintln(stdout, "gpu-probe", cli.Version())
	case args[0] == "--help" || args[0] == "-h" || args[0] == "help":
		_, err = fmt.Fprint(stdout, usage)
	default:
		err = usageError{fmt.Errorf("unknown command %q", args[0])}
	}
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return cli.OK
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "gpu-probe: error: %v\n%s", err, usage)
		return cli.Usage
	}
	fmt.Fprintf(stderr, "gpu-probe: error: %v\n", err)
	return cli.Blind
}

// usageError is a mistake on the command line.
type usageError struct{ error }

// newFlags returns an empty flag set that prints nothing by itself.
func newFlags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	return f
}

// parse reads the flags; no command takes arguments beside them.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if f.NArg() > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", f.Arg(0))}
	}
	return nil
}
