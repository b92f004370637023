// Bench measures the figures that gpuhooks promises, on simulated nodes, and
// prints them as a table beside their limits. A machine may be noisy, so a
// figure above its limit is marked and not an error; counts are exact anywhere.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
)

// row is one figure.
type row struct {
	what  string
	got   string
	limit string
	ok    bool
}

// part measures some figures in a directory of its own.
type part struct {
	name string
	run  func(dir, bin string) ([]row, error)
}

func main() {
	bin := flag.String("bin", "bin", "directory of the built programs")
	only := flag.String("only", "", "one part: size, prolog, calls, epilog, sampler, report, accuracy")
	flag.Parse()
	if err := run(*bin, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(1)
	}
}

// run measures the parts and prints the table, also of what was measured
// before an error.
func run(bin, only string) (err error) {
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gpuhooks-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	var rows []row
	for _, p := range []part{
		{"size", sizes}, {"prolog", prologs}, {"calls", calls}, {"epilog", epilogs},
		{"sampler", samplers}, {"report", reports}, {"accuracy", accuracy},
	} {
		if only != "" && only != p.name {
			continue
		}
		sub := filepath.Join(dir, p.name)
		if e := os.Mkdir(sub, 0o755); e != nil {
			return e
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", p.name)
		got, e := p.run(sub, bin)
		rows = append(rows, got...)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.name, e))
		}
	}
	table(rows)
	return err
}

// table prints the figures.
func table(rows []row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tmeasured\tlimit\t")
	for _, r := range rows {
		mark := ""
		if !r.ok {
			mark = "ABOVE"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.got, r.limit, mark)
	}
	w.Flush()
}
