package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"gpuhooks/internal/lab"
)

// demo runs the parts of the story and prints them.
type demo struct {
	lab   *lab.Lab
	out   io.Writer
	began time.Time
	mu    sync.Mutex // of out
}

// part is one scenario: what was to happen and what was seen.
type part struct {
	*demo
	title string
	jobs  []int
	seen  []sight
}

// sight is one expectation and what came.
type sight struct {
	ok        bool
	want, got string
}

// expect notes whether something happened.
func (p *part) expect(ok bool, want, got string, args ...any) bool {
	p.seen = append(p.seen, sight{ok, want, fmt.Sprintf(got, args...)})
	return ok
}

// say tells at once what is going on; the parts run at the same time.
func (d *demo) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// submit sends a job of this part.
func (p *part) submit(ctx context.Context, name, script string, args ...string) (int, error) {
	id, err := p.lab.Submit(ctx, script, append([]string{"--job-name=" + name}, args...)...)
	if err != nil {
		return 0, err
	}
	p.jobs = append(p.jobs, id)
	p.say("job %d submitted: %s", id, p.title)
	return id, nil
}

// finish waits for a job to be COMPLETED, its epilog included.
func (p *part) finish(ctx context.Context, id int) (lab.Job, error) {
	j, err := p.lab.WaitJob(ctx, id, limit, "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT")
	if err != nil {
		return j, err
	}
	p.say("job %d %s on %s", id, strings.ToLower(j.State), j.Node)
	p.expect(j.State == "COMPLETED", "the job completes", "%s on %s", j.State, j.Node)
	return j, nil
}

// load is a job script that makes the job's GPUs busy.
func (d *demo) load(flags string) string { return "exec " + d.lab.Tool() + " load " + flags }

// near says whether two values agree within a share of the second.
func near(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// print writes a part: its title, then every expectation. It returns the
// number of those that did not come true.
func (p *part) print() (failed int) {
	fmt.Fprintf(p.out, "\n%s\n", p.title)
	for _, s := range p.seen {
		mark := "ok"
		if !s.ok {
			mark, failed = "FAILED", failed+1
		}
		fmt.Fprintf(p.out, "  %-6s  %s\n          %s\n", mark, s.want, strings.ReplaceAll(strings.TrimSpace(s.got), "\n", "\n          "))
	}
	return failed
}
