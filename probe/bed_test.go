//go:build cgo

package main

import (
	"bytes"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/sim"
)

// bed is a simulated node with a state directory, on which a test plays prolog
// and epilog.
type bed struct {
	t    *testing.T
	node *sim.Node
	dir  runs.Dir
	boot string
	ids  map[int]gpu.GPU
	args []string
}

func newBed(t *testing.T, tick, profile string, set ...string) *bed {
	t.Parallel()
	b := &bed{t: t, node: newNode(t, profile, set...), dir: runs.Dir(t.TempDir())}
	b.ids = readOnce(t, b.node).gpus
	var err error
	if b.boot, err = host.NewFS(b.node.Root()).BootID(); err != nil {
		t.Fatal(err)
	}
	b.args = []string{"sample", "--run", string(b.dir), "--root", b.node.Root(), "--nvml", b.node.Library(),
		"--tick", tick, "--spool", filepath.Join(string(b.dir), "spool")}
	return b
}

// begin does what a prolog does: a run's directory appears at once.
func (b *bed) begin(job uint32, gpus ...int) runs.Name {
	b.t.Helper()
	var points []runs.DevicePoint
	for _, i := range gpus {
		points = append(points, runs.DevicePoint{Identity: b.ids[i].Identity})
	}
	return b.beginWith(job, points)
}

func (b *bed) beginWith(job uint32, points []runs.DevicePoint) runs.Name {
	b.t.Helper()
	n := runs.Name{Job: job}
	j := runs.Job{Schema: runs.JobSchema, BootID: b.boot, Start: runs.Point{Time: time.Now().UTC(), Devices: points}}
	if err := b.dir.Create(n, j); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// end does what an epilog does, and returns the sums and how long they took.
func (b *bed) end(n runs.Name) (runs.Sums, time.Duration) {
	b.t.Helper()
	began := time.Now()
	if err := b.dir.MarkEnd(n, runs.Mark{BootID: b.boot, Time: began.UTC()}); err != nil {
		b.t.Fatal(err)
	}
	for time.Since(began) < 5*time.Second {
		if s, err := b.dir.ReadSums(n, b.boot); err == nil && s.Final {
			took := time.Since(began)
			if err := b.dir.MarkDone(n, runs.Mark{BootID: b.boot}); err != nil {
				b.t.Fatal(err)
			}
			return s, took
		}
		time.Sleep(time.Millisecond)
	}
	b.t.Fatalf("run %s: no final sums", n)
	return runs.Sums{}, 0
}

// sampler is a running sampler.
type samplerProcess struct {
	*exec.Cmd
	gone   chan struct{}
	output bytes.Buffer
}

func (b *bed) sampler() *samplerProcess {
	b.t.Helper()
	p := &samplerProcess{Cmd: probe(b.t, b.args...), gone: make(chan struct{})}
	p.Stderr = &p.output
	if err := p.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.gone) }()
	b.t.Cleanup(func() {
		_ = p.Process.Kill() // it may have gone already
		<-p.gone
	})
	return p
}

// leaves waits until the sampler has gone by itself.
func (p *samplerProcess) leaves(t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case <-p.gone:
		if code := p.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the sampler left with status %d: %s", code, p.output.String())
		}
	case <-time.After(within):
		t.Errorf("the sampler is still there after %v", within)
	}
}

// samples waits until the sampler has taken the run in.
func (b *bed) samples(n runs.Name) {
	b.t.Helper()
	for range 500 {
		if h, err := driver.ReadHeartbeat(string(b.dir)); err == nil && strings.Contains(strings.Join(h.Runs, " "), n.String()) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.t.Fatalf("run %s is not sampled", n)
}

func (b *bed) load(args ...string) *exec.Cmd {
	b.t.Helper()
	cmd := b.node.Load(args...)
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > relative*want {
		t.Errorf("%s = %v, want %v within %v", what, got, want, relative)
	}
}
