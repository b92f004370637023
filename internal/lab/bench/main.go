// Bench measures the figures that gpuhooks promises, on simulated nodes, and
// prints them as a table beside their limits. The limits of times were set on a
// machine that starts /bin/true in 0.62 ms; on a slower one the limit stretched by
// that ratio is shown beside it. The ratio is a guide and no proof: our programs
// do more than start. A machine may be noisy, so a figure above its limit is
// marked and not an error; counts are exact anywhere.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"gpuhooks/internal/lab"
)

// row is one figure.
type row struct {
	what  string
	got   string
	limit string
	ok    bool
	pace  bool // above the limit, and within it at this machine's pace
}

// part measures some figures in a directory of its own.
type part struct {
	name string
	run  func(b *bench, dir string) ([]row, error)
}

// bench is what the parts share.
type bench struct {
	bin     string  // directory of the built programs
	stretch float64 // how much slower this machine starts a program than the reference, ≥ 1
}

func main() {
	bin := flag.String("bin", "bin", "directory of the built programs")
	only := flag.String("only", "", "one part: size, prolog, calls, epilog, sampler, report, cached, accuracy")
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

	own := filepath.Join(dir, "bin")
	if err := lab.InstallPrograms(bin, own); err != nil {
		return err
	}
	b, rows, err := calibrate(own)
	if err != nil {
		return err
	}
	for _, p := range []part{
		{"size", sizes}, {"prolog", prologs}, {"calls", calls}, {"epilog", epilogs},
		{"sampler", samplers}, {"report", reports}, {"cached", cached}, {"accuracy", accuracy},
	} {
		if only != "" && only != p.name {
			continue
		}
		sub := filepath.Join(dir, p.name)
		if e := os.Mkdir(sub, 0o755); e != nil {
			return e
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", p.name)
		got, e := p.run(b, sub)
		rows = append(rows, got...)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.name, e))
		}
	}
	table(rows)
	return err
}

// reference is how long the machine on which the limits were set takes to start
// /bin/true.
const reference = 620 * time.Microsecond

// calibrate measures the same here.
func calibrate(bin string) (*bench, []row, error) {
	times, err := repeat(200, func() (time.Duration, error) {
		start := time.Now()
		err := exec.Command("/bin/true").Run()
		return time.Since(start), err
	})
	if err != nil {
		return nil, nil, err
	}
	b := &bench{bin: bin, stretch: max(1, float64(p(times, 0.5))/float64(reference))}
	return b, []row{{"for comparison: /bin/true", spread(times), fmt.Sprintf("0.62 ms: this machine takes %.1f ×", b.stretch), true, false}}, nil
}

// table prints the figures.
func table(rows []row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tmeasured\tlimit\t")
	for _, r := range rows {
		mark := ""
		switch {
		case !r.ok && r.pace:
			mark = "above; within it at this machine's pace"
		case !r.ok:
			mark = "ABOVE"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.got, r.limit, mark)
	}
	w.Flush()
}
