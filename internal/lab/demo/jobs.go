package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/record"
)

// busy is scenario 1: two GPUs, busy and healthy.
func busy(ctx context.Context, p *part) error {
	id, err := p.submit(ctx, "train", p.load("--sm 0.82 --tensor 0.46 --util 97 --memory 40GiB --for 20s"), "-w", "n1", "--gres=gpu:2")
	if err != nil {
		return err
	}
	r, err := p.completed(ctx, id)
	if err != nil {
		return err
	}
	p.expect(len(r.GPUs) == 2, "a record of two GPUs", "%d GPUs: %s", len(r.GPUs), uuids(r))
	p.expectLoad(r, "SM active", "sm_active", 0.82, 20)
	p.expectLoad(r, "Tensor active", "tensor_active", 0.46, 20)
	p.expectAll(r.GPUs, "GPU utilisation ≈ 0.97 (its median)", "gpu_utilization_p50_ratio", 0.97, 0.02)
	p.expectAll(r.GPUs, "40 GiB of memory in use on both", "memory_used_max_bytes", 40<<30, 0.02)
	p.expect(above(r.GPUs, "energy_joules", 1000), "energy is counted", "%s J", values(r.GPUs, "energy_joules"))
	return nil
}

// partlyUsed is scenario 2: eight GPUs allocated, three used.
func partlyUsed(ctx context.Context, p *part) error {
	script := "export CUDA_VISIBLE_DEVICES=0,1,2\n" + p.load("--sm 0.7 --tensor 0.3 --util 95 --memory 20GiB --for 15s")
	id, err := p.submit(ctx, "three-of-eight", script, "-w", "n2", "--gres=gpu:8")
	if err != nil {
		return err
	}
	r, err := p.completed(ctx, id)
	if err != nil {
		return err
	}
	p.expect(len(r.GPUs) == 8, "a record of eight GPUs", "%d GPUs", len(r.GPUs))
	var used []string
	for _, g := range r.GPUs {
		if v, ok := g.Get("sm_active_mean_ratio"); ok && v > 0.1 {
			used = append(used, fmt.Sprint(g.Index))
		}
	}
	p.expect(strings.Join(used, ",") == "0,1,2", "three were used: 0, 1 and 2", "used: %s", strings.Join(used, ", "))
	p.expectReport(ctx, id, "the report says what was not used", "did not use 5 of the 8 allocated GPUs")
	return nil
}

// utilLies is scenario 3: GPU-Util 100 % on a GPU that does next to nothing.
func utilLies(ctx context.Context, p *part) error {
	id, err := p.submit(ctx, "util-lies", p.load("--sm 0.06 --tensor 0 --util 100 --memory 2GiB --for 20s"), "-w", "n1", "--gres=gpu:1")
	if err != nil {
		return err
	}
	r, err := p.completed(ctx, id)
	if err != nil {
		return err
	}
	p.expectAll(r.GPUs, "GPU utilisation ≈ 1 (its median)", "gpu_utilization_p50_ratio", 1, 0.02)
	p.expectLoad(r, "SM active", "sm_active", 0.06, 20)
	p.expectReport(ctx, id, "the report explains the difference in a sentence", "GPU-Util counts the time in which any kernel ran")
	return nil
}

// short is scenario 4: a job of three seconds.
func short(ctx context.Context, p *part) error {
	id, err := p.submit(ctx, "short", p.load("--sm 0.5 --tensor 0.2 --util 80 --memory 8GiB --for 3s"), "-w", "n1", "--gres=gpu:1")
	if err != nil {
		return err
	}
	r, err := p.completed(ctx, id)
	if err != nil {
		return err
	}
	elapsed, ok := r.Elapsed.Get()
	p.expect(ok && elapsed >= 3 && elapsed < 10, "it was measured from start to end", "%.1f s", elapsed)
	p.expectLoad(r, "SM active", "sm_active", 0.5, 3)
	p.expect(above(r.GPUs, "energy_joules", 1), "energy is counted", "%s J", values(r.GPUs, "energy_joules"))
	return nil
}

// array is scenario 5: two tasks that share a node, each with its own GPUs.
func array(ctx context.Context, p *part) error {
	script := `case $SLURM_ARRAY_TASK_ID in 1) sm=0.3 ;; 2) sm=0.7 ;; esac` + "\n" + p.load("--sm $sm --tensor 0.1 --util 90 --memory 12GiB --for 15s")
	id, err := p.submit(ctx, "array", script, "-w", "n1", "--gres=gpu:1", "--array=1-2")
	if err != nil {
		return err
	}
	var used []string
	p.jobs = nil // its tasks are the jobs
	for task, sm := range []float64{0.3, 0.7} {
		name := fmt.Sprintf("%d_%d", id, task+1)
		j, err := p.lab.WaitTask(ctx, id, task+1, limit)
		if err != nil {
			return err
		}
		p.jobs = append(p.jobs, j.ID)
		r, err := p.completed(ctx, j.ID)
		if err != nil {
			return err
		}
		p.expect(len(r.GPUs) == 1, "task "+name+" has one GPU", "%s", uuids(r))
		p.expectLoad(r, "SM active", "sm_active", sm, 15)
		used = append(used, uuids(r))
		out, err := p.lab.Report(ctx, name)
		p.expect(err == nil, "gpu-accounting report "+name+" finds it", "%s", firstLine(out))
	}
	p.expect(used[0] != used[1], "each has its own GPU", "%s", strings.Join(used, " and "))
	return nil
}

// completed waits for a job and returns its record.
func (p *part) completed(ctx context.Context, id int) (record.Record, error) {
	if _, err := p.finish(ctx, id); err != nil {
		return record.Record{}, err
	}
	r, err := p.lab.Record(id)
	if err != nil {
		return r, err
	}
	p.expect(r.State.Word == record.Completed && !r.Quality.SamplerMissing && !r.Quality.NoStart && !r.Quality.NoEnd,
		"the record is whole", "%s, %.1f s, quality %s", r.State.Word, r.Elapsed.Or(0), quality(r.Quality))
	return r, nil
}

// quality is what the record says against itself.
func quality(q record.Quality) string {
	b, err := json.Marshal(q)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// expectLoad wants the record to show a load that lasted some seconds. The mean
// is over the whole run, of which Slurm takes some seconds before and after: it
// may be off by 1 % and by the half second that a look may take while many jobs
// start on two cores. The median is the load itself.
func (p *part) expectLoad(r record.Record, what, quantity string, load, seconds float64) {
	elapsed := r.Elapsed.Or(0)
	mean := load * seconds / elapsed
	p.expectAll(r.GPUs, fmt.Sprintf("%s ≈ %g for %g of %.1f s: on average %.4g", what, load, seconds, elapsed, mean), quantity+"_mean_ratio", mean, 0.01+0.5/elapsed)
	if seconds >= 10 {
		p.expectAll(r.GPUs, fmt.Sprintf("%s while at work (median) ≈ %g", what, load), quantity+"_p50_ratio", load, 0.01)
	}
}

// expectAll wants the field of every GPU to be near a value.
func (p *part) expectAll(gpus []record.GPU, want, field string, value, share float64) {
	ok := len(gpus) > 0
	for _, g := range gpus {
		v, known := g.Get(field)
		ok = ok && known && near(v, value, share)
	}
	p.expect(ok, want, "%s", values(gpus, field))
}

// above says whether the field of every GPU is known and larger.
func above(gpus []record.GPU, field string, limit float64) bool {
	return len(gpus) > 0 && !slices.ContainsFunc(gpus, func(g record.GPU) bool {
		v, known := g.Get(field)
		return !known || v <= limit
	})
}

func values(gpus []record.GPU, field string) string {
	var all []string
	for _, g := range gpus {
		if v, known := g.Get(field); known {
			all = append(all, fmt.Sprintf("%.4g", v))
		} else {
			all = append(all, "unknown ("+string(g.Values[field].Why)+")")
		}
	}
	return strings.Join(all, ", ")
}

func uuids(r record.Record) string {
	var all []string
	for _, g := range r.GPUs {
		all = append(all, fmt.Sprintf("%d %s", g.Index, g.UUID))
	}
	return strings.Join(all, ", ")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// quiet is how long nothing may change before the story believes it.
const quiet = 2 * time.Second
