package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// play runs every scenario, at the same time where that can be. n1 has room for
// the jobs of 1, 3, 4, 5 and the contained error; n2 for 2, and only then for the
// uncontained error, which drains it; n3 is the broken node. The second run of 6
// takes what is free.
func (d *demo) play(ctx context.Context) []*part {
	first := []scenario{
		{"1. Two GPUs, busy and healthy", busy},
		{"2. Eight GPUs allocated, three used", partlyUsed},
		{"3. GPU-Util 100 % and next to nothing done", utilLies},
		{"4. A job of three seconds", short},
		{"5. An array of two tasks on one node", array},
		{"6. A node whose GPU 3 has fallen off the bus", lostGPU},
		{"7a. An uncontained memory error (XID 95)", uncontained},
		{"7b. A contained memory error (XID 94)", contained},
	}
	last := scenario{"8. The node of 6, resumed, in observe mode", observed}

	// Hooks that come together share a look that is up to five seconds old. That
	// of the boot gate saw the node of 6 healthy, and is no job's beginning.
	time.Sleep(5 * time.Second)
	parts := make([]*part, len(first))
	var all sync.WaitGroup
	for _, one := range [][]int{{0}, {1, 6}, {2}, {3}, {4}, {5}, {7}} {
		all.Go(func() {
			for _, i := range one {
				parts[i] = first[i].run(ctx, d)
			}
		})
	}
	all.Wait()
	return append(parts, last.run(ctx, d))
}

// tell prints the story, then what Slurm and the records say. It returns the
// number of expectations that did not come true.
func (d *demo) tell(ctx context.Context, parts []*part) (failed int, err error) {
	for _, p := range parts {
		failed += p.print()
	}
	if err := d.printSlurm(ctx); err != nil {
		return failed, err
	}
	for _, p := range parts {
		for _, id := range p.jobs {
			failed += d.printReport(ctx, id)
		}
	}
	return failed, nil
}

// scenario is a part of the story and how to play it.
type scenario struct {
	title string
	play  func(context.Context, *part) error
}

func (s scenario) run(ctx context.Context, d *demo) *part {
	p := &part{demo: d, title: s.title}
	if err := s.play(ctx, p); err != nil {
		p.expect(false, "the scenario can be played to its end", "%v", err)
	}
	return p
}

// printSlurm shows what Slurm says now.
func (d *demo) printSlurm(ctx context.Context) error {
	var errs []error
	for _, argv := range [][]string{
		{"sinfo", "-R"},
		{"squeue", "--states=all", "--sort=i", "--format=%.8A %.16j %.10T %.6N %.10M"},
	} {
		out, err := d.lab.Slurm(ctx, argv...)
		fmt.Fprintf(d.out, "\n$ %s\n%s", strings.Join(argv, " "), out)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// printReport prints the page of a job; a job without one is a failure.
func (d *demo) printReport(ctx context.Context, id int) (failed int) {
	out, err := d.lab.Report(ctx, fmt.Sprint(id))
	fmt.Fprintf(d.out, "\n$ gpu-accounting report %d\n%s", id, out)
	if err != nil {
		fmt.Fprintf(d.out, "FAILED: %v\n", err)
		return 1
	}
	return 0
}

// expectReport wants a phrase in the page of a job.
func (p *part) expectReport(ctx context.Context, id int, want, phrase string) {
	page, err := p.lab.Report(ctx, fmt.Sprint(id))
	if err != nil {
		p.expect(false, want, "%v: %s", err, page)
		return
	}
	before, after, ok := strings.Cut(strings.Join(strings.Fields(page), " "), phrase)
	if !ok {
		p.expect(false, want, "not in the page: %s\n%s", phrase, page)
		return
	}
	around := before[max(0, len(before)-20):] + phrase + after[:min(len(after), 60)]
	p.expect(true, want, "…%s…", strings.ToValidUTF8(around, ""))
}
