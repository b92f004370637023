package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/host"
	"gpuhooks/internal/node"
	"gpuhooks/internal/slurmconf"
)

func newDoctor(env cli.Env, o *options) *cli.Command {
	c := &cli.Command{
		Use:   "doctor",
		Short: "Say what in Slurm's configuration would make the hooks useless or dangerous",
		Long: `Say what in Slurm's configuration would make the hooks useless or dangerous, each
with cause and cure. It reads slurm.conf and gres.conf, and of Slurm it asks the
version of its commands.

EXIT STATUS
  0  nothing worse than a warning
  1  there is an error
  3  slurm.conf could not be read`,
		Args: cli.NoArgs,
	}
	asJSON := c.Flags().Bool("json", false, "print JSON")
	c.RunE = func(*cli.Command, []string) error { return runDoctor(env, *o, *asJSON) }
	return c
}

func runDoctor(env cli.Env, o options, asJSON bool) error {
	c, err := cli.LoadConfig(o.config)
	if err != nil {
		return err
	}
	conf, f, err := facts(env, c)
	if err != nil {
		return &cli.ExitError{Code: cli.Blind, Err: err, Hint: "give its path as [slurm] conf in " + o.config}
	}
	advice := append(slurmconf.Diagnose(conf, f), catalogueAdvice(c)...)
	if asJSON {
		err = cli.WriteJSON(env.Stdout, struct {
			Schema string             `json:"schema"`
			Node   string             `json:"node"`
			Conf   string             `json:"conf"`
			Advice []slurmconf.Advice `json:"advice"`
		}{"gpuhooks.doctor/1", f.Node, f.ConfPath, append([]slurmconf.Advice{}, advice...)})
	} else {
		var b bytes.Buffer
		printAdvice(&b, f, advice)
		_, err = env.Stdout.Write(b.Bytes())
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(advice, func(a slurmconf.Advice) bool { return a.Severity == slurmconf.SevereError }) {
		return cli.Exit(cli.Failed)
	}
	return nil
}

func printAdvice(w io.Writer, f slurmconf.Facts, advice []slurmconf.Advice) {
	n := map[slurmconf.Severity]int{}
	for _, a := range advice {
		n[a.Severity]++
	}
	fmt.Fprintf(w, "%s: %s: %s, %s, %d to know\n", cli.Clean(f.Node), f.ConfPath,
		plural(n[slurmconf.SevereError], "error"), plural(n[slurmconf.SevereWarning], "warning"), n[slurmconf.SevereInfo])
	for _, a := range advice {
		place := a.Key
		if a.Where != "" {
			place = a.Where + ": " + a.Key
		}
		fmt.Fprintf(w, "\n%s: %s: %s\n  cause: %s\n  cure:  %s\n", a.Severity, cli.Clean(place), cli.Clean(a.What), cli.Clean(a.Cause), cli.Clean(a.Cure))
	}
}

// facts gathers what the diagnosis needs from this node.
func facts(env cli.Env, c config.Config) (slurmconf.Conf, slurmconf.Facts, error) {
	f := slurmconf.Facts{
		Node: cli.NodeName(c, lookup(env.Environ, "SLURMD_NODENAME")), Commands: map[string]bool{},
		Budgets: budgets(c),
	}
	if st, err := os.Stat(c.Slurm.Conf); err == nil && st.Mode().IsRegular() {
		f.HealthConf = c.Slurm.Conf
	}
	var known bool
	if f.Version, known = slurmconf.ParseVersion(c.Slurm.Version); !known {
		f.Version, _ = client(c, env).Version(context.Background()) // unknown is said by no advice that needs it
	}
	f.ConfPath, f.Configless = slurmconf.Locate(cmp.Or(lookup(env.Environ, "SLURM_CONF"), c.Slurm.Conf))
	if f.ConfPath == "" {
		return slurmconf.Conf{}, f, fmt.Errorf("%s: there is no slurm.conf", c.Slurm.Conf)
	}
	conf, err := slurmconf.ReadConf(f.ConfPath)
	if err != nil && len(conf.Settings) == 0 {
		return conf, f, err
	}
	gres, err := slurmconf.ReadGres(cmp.Or(c.Slurm.GresConf, slurmconf.GresPath(f.ConfPath)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.GresError = err.Error()
	}
	f.Gres = gres.ForNode(f.Node)
	f.Programs = slurmconf.ReadPrograms(conf)
	for name, path := range map[string]string{"scontrol": c.Slurm.Scontrol, "sinfo": c.Slurm.Sinfo, "squeue": c.Slurm.Squeue, "sacct": c.Slurm.Sacct} {
		st, err := os.Stat(path)
		f.Commands[name] = err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0
	}
	st, err := os.Stat(c.Slurm.Slurmd)
	f.SlurmdG = err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0
	f.Remembered, _ = node.RemembersDevices(c, f.Node, conf, gres) // one that cannot be read is none
	f.MIG = hasMIG(host.NewFS(c.Paths.Root))
	return conf, f, nil
}

// hasMIG says whether a card of this node is cut into instances: their
// capability devices are there.
func hasMIG(root host.FS) bool {
	minors, err := root.CapabilityMinors()
	if err != nil {
		return false
	}
	caps, err := root.MIGMinors()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(minors, func(m int) bool { _, ok := caps.Find(m); return ok })
}

// budgets are the times that our hooks may take.
func budgets(c config.Config) slurmconf.Budgets {
	b := slurmconf.DefaultBudgets
	const around = 500 * time.Millisecond // the probe's end, and ours
	b.Prolog = max(b.Prolog, max(c.Prolog.Deadline.D(), c.Prolog.Boot.D())+around+c.Drain.Timeout.D())
	b.HealthCheck = max(b.HealthCheck, max(c.HealthCheck.Deadline.D(), c.HealthCheck.Boot.D())+around+c.Drain.Timeout.D())
	return b
}

// catalogueAdvice says what is wrong with the site's own XID catalogue.
func catalogueAdvice(c config.Config) []slurmconf.Advice {
	_, err := node.Catalogue(c.Paths.XID)
	if err == nil {
		return nil
	}
	return []slurmconf.Advice{{
		Severity: slurmconf.SevereError, Key: "paths.xid", What: "the site's XID catalogue cannot be used as it is",
		Cause: err.Error(),
		Cure:  "repair the file, or take [paths] xid out of gpuhooks.toml; gpu-prolog config check says when it is right",
	}}
}
