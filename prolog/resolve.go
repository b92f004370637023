package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"text/tabwriter"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/node"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
	"gpuhooks/internal/verdict"
)

// resolveSchema is the format of `gpu-prolog resolve --json`.
const resolveSchema = "gpuhooks.resolution/1"

type resolveOptions struct {
	gresConf  string
	inventory string
	slurmdG   string
	json      bool
}

func newResolve(env cli.Env, path *string) *cli.Command {
	var o resolveOptions
	c := &cli.Command{
		Use:   "resolve",
		Short: "Say which GPUs a job has, and by which rule",
		Long: `Say which GPUs the job has in whose environment this is run, and by which rule,
or that and why they cannot be found. SLURM_JOB_GPUS is a place in Slurm's own
list: neither NVML's index nor the number in /dev/nvidiaN.

EXIT STATUS
  0  resolved; or the job has no GPUs here; or there is no job
  2  usage, configuration, or a file that cannot be read
  3  the job's GPUs cannot be found out`,
		Example: `  gpu-prolog resolve
  env $(cat job.env) gpu-prolog resolve --gres-conf gres.conf --inventory node.json --json`,
		Args: cli.NoArgs,
		RunE: func(*cli.Command, []string) error { return resolve(env, *path, o) },
	}
	c.Flags().StringVar(&o.gresConf, "gres-conf", "", "read this `FILE` for gres.conf")
	c.Flags().StringVar(&o.inventory, "inventory", "", "take the node from this JSON `FILE` (gpu-probe read --inventory) instead of asking the driver")
	c.Flags().StringVar(&o.slurmdG, "slurmd-g", "", "take Slurm's device list from this `FILE`, the output of slurmd -G")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

func resolve(env cli.Env, path string, o resolveOptions) error {
	job, err := slurm.FromEnv(env.Environ)
	if err != nil {
		return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("environment: %w", err)}
	}
	r, err := resolveJob(env, path, o, job)
	if err != nil {
		return err
	}
	if o.json {
		err = cli.WriteJSON(env.Stdout, struct {
			Schema string `json:"schema"`
			Job    uint32 `json:"job,omitempty"`
			slurm.Resolution
		}{resolveSchema, job.ID, r})
	} else {
		err = printResolution(env, job, r)
	}
	if err == nil && r.Verdict == slurm.CannotResolve {
		return cli.Exit(cli.Blind)
	}
	return err
}

// resolveJob answers for the node that it runs on, or for the files given.
func resolveJob(env cli.Env, path string, o resolveOptions, job slurm.Job) (slurm.Resolution, error) {
	bad := func(err error) (slurm.Resolution, error) {
		return slurm.Resolution{}, &cli.ExitError{Code: cli.Usage, Err: err}
	}
	cfg, err := cli.LoadConfig(path)
	if err != nil {
		return slurm.Resolution{}, err
	}
	var inv slurm.Inventory
	var gres slurmconf.Gres
	var opt slurm.Options
	if o.inventory != "" {
		if inv, err = readInventory(o.inventory); err != nil {
			return bad(err)
		}
	} else {
		look := node.Read(context.Background(), cfg, node.Options{
			Hook: verdict.HealthCheck, Tier: 1, NodeName: cli.NodeName(cfg, job.NodeName), SlurmConf: job.SlurmConf, Now: env.Now,
		})
		look.Wait()
		if a := look.Reading.Answer; a != gpu.AnswerWhole {
			cli.NewLog(env).Warnf("gpu-probe: %s: %s", a, look.Reading.Why)
		}
		inv, gres, opt = look.Inventory, look.Gres, look.SlurmOptions()
	}
	if o.gresConf != "" {
		if gres, err = slurmconf.ReadGres(o.gresConf); err != nil {
			return bad(err)
		}
		opt.Remembered = nil // belongs to the node's own
	} else if o.inventory != "" {
		gres, err = slurmconf.ReadGres(gresPath(cfg))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return bad(err)
		}
	}
	if o.slurmdG != "" {
		text, err := os.ReadFile(o.slurmdG)
		if err == nil {
			opt.Detected, err = slurmconf.ParseSlurmdG(text)
		}
		if err != nil {
			return bad(err)
		}
	}
	return slurm.Resolve(job, inv, gres, opt), nil
}

func gresPath(cfg config.Config) string {
	if cfg.Slurm.GresConf != "" {
		return cfg.Slurm.GresConf
	}
	return slurmconf.GresPath(cfg.Slurm.Conf)
}

func readInventory(path string) (slurm.Inventory, error) {
	var inv slurm.Inventory
	text, err := os.ReadFile(path)
	if err != nil {
		return inv, err
	}
	if err := json.Unmarshal(text, &inv); err != nil {
		return inv, fmt.Errorf("%s: not an inventory: %w", path, err)
	}
	return inv, nil
}

func printResolution(env cli.Env, job slurm.Job, r slurm.Resolution) error {
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	switch r.Verdict {
	case slurm.Resolved:
		fmt.Fprintf(w, "job %d has %d of this node's GPUs (%s)\n", job.ID, len(r.GPUs), r.Reason)
		fmt.Fprintln(w, "index\tdevice\tPCI\tUUID\tMIG")
		for _, g := range r.GPUs {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", number(g.Index, ""), number(g.Minor, "/dev/nvidia"), g.PCI, g.UUID, instance(g.MIG))
		}
	case slurm.CannotResolve:
		fmt.Fprintf(w, "job %d: cannot resolve: %s\n", job.ID, r.Reason)
	default:
		fmt.Fprintf(w, "%s: %s\n", r.Verdict, r.Reason)
	}
	if r.MayBeShared() && r.Verdict == slurm.Resolved {
		fmt.Fprintf(w, "shared with other jobs: %s\n", r.Sharing)
	}
	for _, warning := range r.Warnings {
		cli.NewLog(env).Warnf("%s", warning)
	}
	return w.Flush()
}

func number(n gpu.Opt[int], before string) string {
	v, ok := n.Get()
	if !ok {
		return "-"
	}
	return before + strconv.Itoa(v)
}

func instance(m *slurm.MIG) string {
	if m == nil {
		return "-"
	}
	return fmt.Sprintf("gi %d, ci %d, %s %s", m.GI, m.CI, m.Profile, m.UUID)
}
