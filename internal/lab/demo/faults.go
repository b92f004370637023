package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gpuhooks/internal/record"
)

// lostGPU is scenario 6: Slurm places a job on a node whose GPU 3 has fallen
// off the bus.
func lostGPU(ctx context.Context, p *part) error {
	bad := p.lab.Node("n3")
	if err := bad.Sim.Set("gpu.3.lost=true"); err != nil {
		return err
	}
	if err := bad.Sim.Xid(3, 79, ""); err != nil {
		return err
	}
	// n3 has the least weight: the job goes there, though it names no node.
	id, err := p.submit(ctx, "lost-gpu", p.load("--sm 0.6 --tensor 0.3 --util 90 --memory 30GiB --for 10s"), "--gres=gpu:4")
	if err != nil {
		return err
	}
	if err := p.drained(ctx, "n3"); err != nil {
		return err
	}
	s, err := p.lab.NodeState(ctx, "n3")
	if err != nil {
		return err
	}
	uuid := bad.UUIDs[3]
	p.expect(s.Drained() && strings.HasPrefix(s.Reason, "[HC] LOST gpu=3 "+uuid),
		"its prolog drains n3 and names GPU 3 with its UUID", "%s: %s", s.State, s.Reason)
	out, err := p.lab.Slurm(ctx, "sinfo", "-R")
	if err != nil {
		return err
	}
	p.expect(strings.Contains(out, "[HC] LOST gpu=3"), "20 characters of sinfo -R tell it", "%s", out)

	j, err := p.finish(ctx, id)
	if err != nil {
		return err
	}
	p.expect(j.Restarts == 1 && j.Node != "n3" && j.Node != "", "Slurm requeued it and ran it elsewhere", "restarts: %d, ran on %s", j.Restarts, j.Node)
	r, err := p.lab.Record(id)
	if err != nil {
		return err
	}
	p.expect(r.Node == j.Node && len(r.GPUs) == 4, "one record, of the run that took place", "on %s, %d GPUs, restart %d", r.Node, len(r.GPUs), r.Job.Restart)
	return nil
}

// uncontained is scenario 7, first half: XID 95 during a job.
func uncontained(ctx context.Context, p *part) error {
	r, id, err := p.eccJob(ctx, "uncontained", "n2", 95, func(gpu int) []string {
		return []string{fmt.Sprintf("gpu.%d.recovery=1", gpu)}
	})
	if err != nil {
		return err
	}
	p.expectEvent(r, 95)
	if err := p.drained(ctx, "n2"); err != nil {
		return err
	}
	s, err := p.lab.NodeState(ctx, "n2")
	if err != nil {
		return err
	}
	p.expect(s.Drained() && strings.HasPrefix(s.Reason, "[HC] ") && strings.Contains(s.Reason, r.GPUs[0].UUID),
		"its epilog drains n2", "%s: %s", s.State, s.Reason)
	p.expectReport(ctx, id, "the report tells of the error", "XID 95")
	return nil
}

// contained is scenario 7, second half: XID 94, which needs no repair now.
func contained(ctx context.Context, p *part) error {
	r, id, err := p.eccJob(ctx, "contained", "n1", 94, func(int) []string { return nil })
	if err != nil {
		return err
	}
	p.expectEvent(r, 94)
	time.Sleep(quiet) // whoever wanted to drain the node would have
	s, err := p.lab.NodeState(ctx, "n1")
	if err != nil {
		return err
	}
	p.expect(!s.Drained(), "n1 is not drained", "%s %s", s.State, s.Reason)
	p.expectReport(ctx, id, "the report explains the error", "XID 94")
	return nil
}

// eccJob runs a job on one GPU of the node; while it runs, the GPU has an
// uncorrectable memory error and the kernel logs the XID.
func (p *part) eccJob(ctx context.Context, name, node string, xid int, more func(gpu int) []string) (record.Record, int, error) {
	id, err := p.submit(ctx, name, p.load("--sm 0.7 --tensor 0.4 --util 95 --memory 16GiB --for 8s"), "-w", node, "--gres=gpu:1")
	if err != nil {
		return record.Record{}, 0, err
	}
	if _, err := p.lab.WaitJob(ctx, id, limit, "RUNNING"); err != nil {
		return record.Record{}, 0, err
	}
	gpus, err := p.lab.JobGPUs(ctx, id)
	if err != nil {
		return record.Record{}, 0, err
	}
	time.Sleep(2 * time.Second) // the prolog has read the start counters, the job is at work
	sim := p.lab.Node(node).Sim
	settings := append([]string{fmt.Sprintf("gpu.%d.ecc.volatile.uncorrected.dram=1", gpus[0]), fmt.Sprintf("gpu.%d.ecc.aggregate.uncorrected.dram=1", gpus[0])}, more(gpus[0])...)
	for _, s := range settings {
		if err := sim.Set(s); err != nil {
			return record.Record{}, 0, err
		}
	}
	if err := sim.Xid(gpus[0], xid, ""); err != nil {
		return record.Record{}, 0, err
	}
	p.say("job %d: XID %d on GPU %d of %s", id, xid, gpus[0], node)
	r, err := p.completed(ctx, id)
	if err == nil && len(r.GPUs) != 1 {
		err = fmt.Errorf("job %d: %d GPUs in the record, want 1", id, len(r.GPUs))
	}
	if err == nil {
		p.expectAll(r.GPUs, "the record shows one uncorrected error", "ecc_uncorrected_dram_errors", 1, 0)
	}
	return r, id, err
}

func (p *part) expectEvent(r record.Record, code int) {
	for _, e := range r.Events {
		if e.Kind == "xid" && e.Code == code {
			p.expect(e.UUID == r.GPUs[0].UUID && e.Meaning != "", fmt.Sprintf("the record shows XID %d on its GPU, explained", code), "%s: %s", e.UUID, e.Meaning)
			return
		}
	}
	p.expect(false, fmt.Sprintf("the record shows XID %d", code), "%d events: %+v", len(r.Events), r.Events)
}

// observed is scenario 8: the node of 6 again, resumed, in observe mode.
func observed(ctx context.Context, p *part) error {
	n := p.lab.Node("n3")
	if err := p.lab.SetMode(n, "observe"); err != nil {
		return err
	}
	if err := p.lab.Resume(ctx, "n3"); err != nil {
		return err
	}
	script := "export CUDA_VISIBLE_DEVICES=0,1,2\n" + p.load("--sm 0.5 --tensor 0.2 --util 80 --memory 24GiB --for 5s") // 3 is lost
	id, err := p.submit(ctx, "observed", script, "-w", "n3", "--gres=gpu:4")
	if err != nil {
		return err
	}
	j, err := p.finish(ctx, id)
	if err != nil {
		return err
	}
	p.expect(j.Node == "n3" && j.Restarts == 0, "it runs on n3, at once", "%s, restarts: %d", j.Node, j.Restarts)
	time.Sleep(quiet)
	s, err := p.lab.NodeState(ctx, "n3")
	if err != nil {
		return err
	}
	p.expect(!s.Drained(), "n3 is not drained", "%s %s", s.State, s.Reason)
	line := lineWith(n.HookLog(), "gpu-prolog", "would drain", "LOST gpu=3")
	p.expect(line != "", `the log says "would drain"`, "%s", line)
	return nil
}

// drained waits until a node takes no more jobs.
func (p *part) drained(ctx context.Context, node string) error {
	for ctx.Err() == nil {
		if s, err := p.lab.NodeState(ctx, node); err == nil && s.Drained() {
			p.say("node %s drained: %s", node, s.Reason)
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("node %s was not drained", node)
}

// lineWith is the last line that holds all of the words.
func lineWith(text string, words ...string) (found string) {
	for line := range strings.Lines(text) {
		ok := true
		for _, w := range words {
			ok = ok && strings.Contains(line, w)
		}
		if ok {
			found = strings.TrimSpace(line)
		}
	}
	return found
}
