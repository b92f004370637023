package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

// unknown stands where the driver does not say.
const unknown = "-"

// print writes the look as a page: one line of summary, what is not well, the
// cards, the checks. quiet leaves only what is not well.
func (l looked) print(w io.Writer, quiet bool) {
	v := l.verdict
	if quiet && len(v.Findings) == 0 {
		return
	}
	result := string(v.Outcome)
	switch v.Action {
	case verdict.Drain:
		result += ", drain"
	case verdict.WouldDrain:
		result += ", would drain"
	}
	n := l.look.Reading.Node
	fmt.Fprintf(w, "%s: %s: %s, driver %s, tier %d, %.2f s\n",
		cli.Clean(l.name), result, plural(len(n.GPUs), "GPU"), n.Driver.Version.Or("unknown"), v.Tier, l.look.Reading.Elapsed.Seconds())
	for _, f := range v.Findings {
		fmt.Fprintln(w, "  "+cli.Clean(f.Line()))
	}
	if quiet {
		return
	}
	if len(n.GPUs) > 0 {
		fmt.Fprintln(w)
		printGPUs(w, n.GPUs, v)
	}
	fmt.Fprintln(w)
	printChecks(w, v)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// printGPUs is one row a card, with every name by which it may be looked for.
func printGPUs(w io.Writer, gpus []gpu.GPU, v verdict.Verdict) {
	t := table(w)
	fmt.Fprintln(t, "GPU\tMINOR\tPCI\tUUID\tNAME\tLINK\tTEMP\tPOWER\tMEMORY\tRESULT")
	for i := range gpus {
		g := &gpus[i]
		row := []string{
			fmt.Sprint(g.Index), opt(g.Minor, "%d"), g.PCI, g.UUID, g.Name, link(g.Health),
			reading(g.Readings, gpu.Temperature, 1, "%.0f C"), reading(g.Readings, gpu.Power, 1, "%.0f W"), memory(g), string(outcome(g, v)),
		}
		for j := range row {
			row[j] = cli.Clean(row[j])
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	// A buffer takes everything.
	_ = t.Flush()
}

// outcome is the worst finding about a card.
func outcome(g *gpu.GPU, v verdict.Verdict) check.Outcome {
	worst := check.Pass
	for _, f := range v.Findings {
		if f.GPU != nil && f.GPU.UUID == g.UUID && f.Outcome.Worse(worst) {
			worst = f.Outcome
		}
	}
	return worst
}

func opt[T any](o gpu.Opt[T], format string) string {
	v, ok := o.Get()
	if !ok {
		return unknown
	}
	return fmt.Sprintf(format, v)
}

func reading(r gpu.Readings, m gpu.Metric, scale float64, format string) string {
	v, ok := r[m]
	if !ok {
		return unknown
	}
	return fmt.Sprintf(format, v*scale)
}

func link(h gpu.Health) string {
	if !h.PCIeGen.IsSet() && !h.PCIeWidth.IsSet() {
		return unknown
	}
	return "gen" + opt(h.PCIeGen, "%d") + " x" + opt(h.PCIeWidth, "%d")
}

func memory(g *gpu.GPU) string {
	const gib = 1 << 30
	total := unknown
	if v, ok := g.Health.MemoryTotal.Get(); ok {
		total = fmt.Sprintf("%.0f GiB", float64(v)/gib)
	}
	used := reading(g.Readings, gpu.MemoryUsed, 1.0/gib, "%.1f")
	if used == unknown && total == unknown {
		return unknown
	}
	return used + "/" + total
}

func printChecks(w io.Writer, v verdict.Verdict) {
	t := table(w)
	fmt.Fprintln(t, "CHECK\tRESULT")
	for _, c := range v.Checks {
		row := fmt.Sprintf("%s\t%s", c.Check, c.Outcome)
		if c.Text != "" {
			row += "\t" + cli.Clean(c.Text)
		}
		fmt.Fprintln(t, row)
	}
	// A buffer takes everything.
	_ = t.Flush()
}
