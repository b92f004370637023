package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"gpuhooks/internal/record"
)

// The load of the accuracy part, and what the simulated card draws under it
// and without.
const (
	loadSM     = 0.82
	loadTensor = 0.46
	loadWatts  = 520
	idleWatts  = 72
)

// accuracy compares a record's averages with the load that was simulated, for a
// job of twenty seconds and one of three. The true mean over the record's span
// is the load times the share of the span in which it ran.
func accuracy(b *bench, dir string) (rows []row, err error) {
	n, err := newNode(dir, b.bin, "dgx-h100")
	if err != nil {
		return nil, err
	}
	for _, cumulative := range []bool{true, false} {
		if err := n.sim.Set(fmt.Sprintf("gpm.cumulative=%t", cumulative), fmt.Sprintf("gpu.*.power=%d", idleWatts)); err != nil {
			return rows, err
		}
		path := "samples"
		if cumulative {
			path = "cumulative counters"
		}
		for _, c := range []struct {
			length time.Duration
			limit  float64
		}{{20 * time.Second, 0.01}, {3 * time.Second, 0.05}} {
			r, err := loadedJob(n, c.length)
			if err != nil {
				return rows, err
			}
			span, _ := r.Elapsed.Get()
			for _, f := range []struct {
				field string
				load  float64
			}{{"sm_active_mean_ratio", loadSM}, {"tensor_active_mean_ratio", loadTensor}} {
				got, ok := r.GPUs[0].Get(f.field)
				off := math.Abs(got/(f.load*c.length.Seconds()/span) - 1)
				rows = append(rows, row{
					fmt.Sprintf("%s of a %s job from %s", f.field, c.length, path),
					fmt.Sprintf("%.4f, %.2f %% off", got, off*100), fmt.Sprintf("%g %%", c.limit*100), ok && off <= c.limit, false,
				})
			}
			got, ok := r.GPUs[0].Get("energy_joules")
			want := loadWatts*c.length.Seconds() + idleWatts*(span-c.length.Seconds())
			off := math.Abs(got/want - 1)
			rows = append(rows, row{
				fmt.Sprintf("energy of a %s job", c.length),
				fmt.Sprintf("%.1f J, %.2f %% off", got, off*100), "0.5 %", ok && off <= 0.005, false,
			})
		}
	}
	return rows, nil
}

// loadedJob runs one job on GPU 0 with the load for just that long, and returns
// its record.
func loadedJob(n *node, length time.Duration) (r record.Record, err error) {
	job, _, err := n.prolog("0")
	if err != nil {
		return r, err
	}
	if err := n.sim.Load("--gpus", "0", "--for", length.String(), "--util", "97", "--power", fmt.Sprint(loadWatts),
		"--sm", fmt.Sprint(loadSM), "--tensor", fmt.Sprint(loadTensor)).Run(); err != nil {
		return r, fmt.Errorf("gpu-sim load: %w", err)
	}
	if _, err := n.epilog(job, "0"); err != nil {
		return r, err
	}
	b, err := os.ReadFile(filepath.Join(n.path("spool"), "records", fmt.Sprintf("%d.0.bench.json", job)))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}
