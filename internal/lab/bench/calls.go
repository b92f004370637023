package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// perGPU counts the calls that named a GPU, by GPU.
func perGPU(counts map[string]int) map[string]int {
	out := map[string]int{}
	for k, n := range counts {
		if _, gpu, ok := strings.Cut(k, " gpu="); ok {
			out[gpu] += n
		}
	}
	return out
}

// most is the highest count of any GPU.
func most(counts map[string]int) (n int) {
	for _, c := range counts {
		n = max(n, c)
	}
	return n
}

// calls counts what one look at tier 1 asks the driver.
func calls(b *bench, dir string) (rows []row, err error) {
	look := func(profile string) (map[string]int, map[string]int, error) {
		n, err := newNode(filepath.Join(dir, profile), b.bin, profile)
		if err != nil {
			return nil, nil, err
		}
		if err := n.configure(false); err != nil {
			return nil, nil, err
		}
		if _, _, err := n.prolog("0"); err != nil {
			return nil, nil, err
		}
		if err := n.sim.Set("count_calls=true"); err != nil {
			return nil, nil, err
		}
		if err := n.sim.ResetCalls(); err != nil {
			return nil, nil, err
		}
		if _, _, err := n.prolog("0"); err != nil {
			return nil, nil, err
		}
		counts, err := n.sim.Calls()
		if err != nil {
			return nil, nil, err
		}
		inv, err := n.inventory()
		instances := map[string]int{}
		for i, g := range inv.GPUs {
			instances[fmt.Sprint(i)] = len(g.MIG)
		}
		return perGPU(counts), instances, err
	}
	whole, _, err := look("dgx-h100")
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{"NVML calls a GPU at tier 1", fmt.Sprint(most(whole)), "25", most(whole) > 0 && most(whole) <= 25, false})
	counts, instances, err := look("dgx-a100-mig")
	if err != nil {
		return rows, err
	}
	worst := 0.0
	for g, n := range instances {
		if n > 0 {
			worst = max(worst, float64(counts[g]-25)/float64(n))
		}
	}
	rows = append(rows, row{"NVML calls a MIG instance beyond 25 for its GPU", fmt.Sprintf("%.1f", worst), "8", worst > 0 && worst <= 8, false})
	return rows, nil
}

// samplers is what measuring costs while jobs run.
func samplers(b *bench, dir string) (rows []row, err error) {
	var one float64
	for _, jobs := range []int{1, 8} {
		n, err := newNode(filepath.Join(dir, fmt.Sprint(jobs)), b.bin, "dgx-h100")
		if err != nil {
			return rows, err
		}
		if err := n.sim.Set("count_calls=true"); err != nil {
			return rows, err
		}
		started := map[int]string{}
		for i := range jobs {
			gpus := all8
			if jobs > 1 {
				gpus = fmt.Sprint(i)
			}
			job, _, err := n.prolog(gpus)
			if err != nil {
				return rows, err
			}
			started[job] = gpus
		}
		time.Sleep(2500 * time.Millisecond)
		if err := n.sim.ResetCalls(); err != nil {
			return rows, err
		}
		const ticks = 20 // the node is configured with one a second
		before, err := usage(n.path("run/sampler.json"))
		if err != nil {
			return rows, err
		}
		time.Sleep(ticks * time.Second)
		after, err := usage(n.path("run/sampler.json"))
		if err != nil {
			return rows, err
		}
		counts, err := n.sim.Calls()
		if err != nil {
			return rows, err
		}
		perTick := float64(most(perGPU(counts))) / ticks
		cpu := (after.cpu - before.cpu) / ticks
		if jobs == 1 {
			one = perTick
			rows = append(rows,
				row{"sampler RSS", fmt.Sprintf("%.1f MB", after.rss/1e6), "12 MB", after.rss <= 12e6, false},
				row{"sampler CPU a tick, 8 GPUs", ms(cpu), "1 ms, here " + ms(b.here(time.Millisecond, 0)), cpu <= time.Millisecond, cpu <= b.here(time.Millisecond, 0)},
				row{"sampler NVML calls a GPU and tick, 1 job", fmt.Sprintf("%.2f", perTick), "8", perTick > 0 && perTick <= 8, false})
		} else {
			rows = append(rows, row{"… 8 jobs", fmt.Sprintf("%.2f", perTick), fmt.Sprintf("%.2f", one), perTick <= one*1.05, false})
		}
		for job, gpus := range started {
			if _, err := n.epilog(job, gpus); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}
