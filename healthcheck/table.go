package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

// unknown stands where the driver does not say.
const unknown = "n/a"

// pageWidth is where lists of names are broken.
const pageWidth = 100

// print writes the look as a page: one line of summary, what is not well and
// what to do about it, the cards, the checks. quiet leaves only what is not well.
func (l looked) print(w io.Writer, quiet bool) {
	if quiet && len(l.verdict.Findings) == 0 {
		return
	}
	fmt.Fprintln(w, cli.Clean(l.head()))
	printFindings(w, l.verdict.Findings, quiet)
	if quiet {
		return
	}
	printNotes(w, l.verdict.Notes)
	if len(l.gpus) > 0 {
		fmt.Fprintln(w)
		printGPUs(w, l.gpus, l.verdict)
	}
	fmt.Fprintln(w)
	printChecks(w, l.verdict)
}

// head is the page in one line:
//
//	n1: fail, drain: 8 x NVIDIA H100 80GB HBM3, driver 580.95.05 (for CUDA up to 13.0), tier 1, 0.04 s
func (l looked) head() string {
	v := l.verdict
	d := l.look.Reading.Node.Driver
	driver := "driver " + d.Version.Or("unknown")
	if cuda, ok := d.CUDA.Get(); ok {
		driver += " (for CUDA up to " + cuda + ")"
	}
	return fmt.Sprintf("%s: %s: %s, %s, tier %d, %.2f s", l.name, inWords(v), l.cards(), driver, v.Tier, l.look.Reading.Elapsed.Seconds())
}

// cards counts the cards by name: "8 x NVIDIA H100 80GB HBM3". At tier 0, which
// does not ask NVML, they are those of /proc.
func (l looked) cards() string {
	var names []string
	count := map[string]int{}
	add := func(name string) {
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for _, g := range l.gpus {
		add(g.Name)
	}
	if l.verdict.Tier == 0 {
		for _, p := range l.look.Reading.Node.Presence.Proc {
			add(p.Model)
		}
	}
	if len(names) == 0 {
		return "no GPU"
	}
	for i, n := range names {
		if names[i] = fmt.Sprintf("%d x %s", count[n], n); n == "" {
			names[i] = plural(count[n], "GPU")
		}
	}
	return strings.Join(names, " + ")
}

// printFindings writes what is not well, the worst first, each with its cure
// the first time that its check speaks.
func printFindings(w io.Writer, findings []verdict.Finding, quiet bool) {
	cured := map[string]bool{}
	for _, f := range findings {
		if !quiet && !cured[f.Check] {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, "  "+cli.Clean(f.Line()))
		if cure := cureOf(f.Check); cure != "" && !quiet && !cured[f.Check] {
			fmt.Fprintln(w, "    cure: "+cure)
		}
		cured[f.Check] = true
	}
}

// printNotes writes what passes and is worth knowing, once for all cards of
// which the same is said.
func printNotes(w io.Writer, notes []check.Finding) {
	said := map[string]bool{}
	for _, n := range notes {
		key := n.Check + n.Text
		if said[key] {
			continue
		}
		if len(said) == 0 {
			fmt.Fprintln(w)
		}
		said[key] = true
		var who []string
		for _, o := range notes {
			if o.Check == n.Check && o.Text == n.Text && o.GPU != nil {
				who = append(who, place(o.GPU.Index))
			}
		}
		text := n.Text
		if len(who) > 0 {
			text = "GPU " + strings.Join(who, ",") + ": " + text
		}
		fmt.Fprintln(w, "  note: "+cli.Clean(n.Check+": "+text))
	}
}

func cureOf(name string) string {
	all := check.All()
	i := slices.IndexFunc(all, func(c check.Check) bool { return c.Name == name })
	if i < 0 {
		return ""
	}
	return all[i].Doc.Cure
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// printGPUs is one row a card, with every name by which it may be looked for.
// The product name is in the head line unless the cards differ.
func printGPUs(w io.Writer, gpus []gpu.GPU, v verdict.Verdict) {
	mixed := slices.ContainsFunc(gpus, func(g gpu.GPU) bool { return g.Name != gpus[0].Name })
	t := table(w)
	head := []string{"GPU", "MINOR", "PCI", "UUID"}
	if mixed {
		head = append(head, "NAME")
	}
	for _, c := range columns {
		head = append(head, c.head)
	}
	fmt.Fprintln(t, strings.Join(append(head, "RESULT"), "\t"))
	for i := range gpus {
		g := &gpus[i]
		row := []string{place(g.Index), opt(g.Minor, "%d"), g.PCI, g.UUID}
		if mixed {
			row = append(row, g.Name)
		}
		for _, c := range columns {
			row = append(row, c.cell(g))
		}
		row = append(row, string(outcome(g, v)))
		for j := range row {
			row[j] = cli.Clean(row[j])
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	// A buffer takes everything.
	_ = t.Flush()
}

// place is NVML's index, or unknown for a card that NVML does not list.
func place(index int) string {
	if index < 0 {
		return unknown
	}
	return fmt.Sprint(index)
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

// printChecks names the checks by outcome. Why one does not apply or failed
// stands in --json and above.
func printChecks(w io.Writer, v verdict.Verdict) {
	for _, group := range []struct {
		outcome check.Outcome
		title   string
	}{
		{check.Fail, "failed"}, {check.Error, "could not look"}, {check.Warn, "warn"}, {check.Pass, "passed"}, {check.Skip, "do not apply"},
	} {
		var names []string
		for _, r := range v.Checks {
			if r.Outcome == group.outcome {
				names = append(names, r.Check)
			}
		}
		if len(names) > 0 {
			wrap(w, fmt.Sprintf("%s (%d): ", group.title, len(names)), names)
		}
	}
}

// wrap writes names behind a title, with lines below one another.
func wrap(w io.Writer, title string, names []string) {
	line := title
	for i, n := range names {
		if i < len(names)-1 {
			n += ", "
		}
		if len(line)+len(n) > pageWidth && strings.TrimSpace(line) != "" {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line = "  "
		}
		line += n
	}
	fmt.Fprintln(w, line)
}
