// gpu-lab is `make demo`: it starts a Slurm cluster with simulated GPUs, runs
// real jobs through the hooks, and shows what became of them. It ends with
// status 0 only if everything it tells really happened.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gpuhooks/internal/lab"
)

// limit is what the whole demo may take.
const limit = 170 * time.Second

func main() {
	keep := flag.Bool("keep", false, "leave the cluster up and say how to use it")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: gpu-lab [--keep] | gpu-lab stop DIR")
	}
	flag.Parse()
	var err error
	switch {
	case flag.NArg() == 0:
		err = run(*keep)
	case flag.NArg() == 2 && flag.Arg(0) == "stop":
		err = lab.StopDir(flag.Arg(1))
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu-lab: error:", err)
		os.Exit(1)
	}
}

func run(keep bool) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	o, err := lab.Options{Log: os.Stdout}.FromRepo()
	if err != nil {
		return err
	}
	began := time.Now()
	l, err := lab.Start(ctx, o)
	if err != nil {
		return err
	}
	d := &demo{lab: l, out: os.Stdout, began: began}
	defer func() {
		if keep {
			howToUse(l)
			return
		}
		err = errors.Join(err, l.Stop())
		if err == nil {
			fmt.Printf("\nEverything above happened. The cluster is stopped; %.0f s in all.\n", time.Since(began).Seconds())
		}
	}()
	fmt.Println()
	failed, err := d.tell(ctx, d.play(ctx))
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d expectations did not come true", failed))
	}
	return err
}

func howToUse(l *lab.Lab) {
	fmt.Printf(`
The cluster is up. To use it:

    export SLURM_CONF=%[1]s
    sbatch --gres=gpu:2 --wrap '%[2]s/nodes/$SLURMD_NODENAME/gpu-sim load --sm 0.5 --for 20s'
    bin/gpu-accounting report JOBID --dir %[2]s/nodes/n3/spool
    bin/gpu-healthcheck --config %[2]s/nodes/n3/gpuhooks.toml

To break a GPU of n3, and to mend it:

    %[2]s/nodes/n3/gpu-sim set gpu.3.lost=true
    %[2]s/nodes/n3/gpu-sim clear 3

To stop the cluster:

    make demo-stop DIR=%[2]s
`, l.SlurmConf(), l.Dir)
}
