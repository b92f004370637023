package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const all8 = "0,1,2,3,4,5,6,7"

// sizes are the stripped programs.
func sizes(b *bench, _ string) (rows []row, err error) {
	for _, f := range []struct {
		program string
		mb      float64
	}{
		{"gpu-prolog", 4}, {"gpu-epilog", 4}, {"gpu-healthcheck", 4}, {"gpu-probe", 5}, {"gpu-accounting", 16},
	} {
		st, err := os.Stat(filepath.Join(b.bin, f.program))
		if err != nil {
			return rows, err
		}
		mb := float64(st.Size()) / 1e6
		rows = append(rows, row{"size of " + f.program, fmt.Sprintf("%.2f MB", mb), fmt.Sprintf("%g MB", f.mb), mb <= f.mb, false})
	}
	return rows, nil
}

// prologs are the times users wait before their job starts.
func prologs(b *bench, dir string) (rows []row, err error) {
	n, err := newNode(dir, b.bin, "dgx-h100")
	if err != nil {
		return nil, err
	}
	if err := n.configure(false); err != nil {
		return nil, err
	}
	times, err := repeat(200, func() (time.Duration, error) { return n.alone("") })
	if err != nil {
		return rows, err
	}
	rows = append(rows, b.timing("prolog, job without GPUs", times, 3*time.Millisecond, 0))

	for _, c := range []struct {
		what     string
		scenario []string
		runs     int
		limit    time.Duration
		waits    time.Duration // of the limit: for the library, whatever the machine
	}{
		{"prolog tier 1, 8 GPUs, library answers at once", nil, 100, 12 * time.Millisecond, 0},
		{"… 0.5 ms a call", []string{"call.*=delay=0.5ms"}, 50, 40 * time.Millisecond, 28 * time.Millisecond},
		{"… 5 ms a call", []string{"call.*=delay=5ms"}, 20, 300 * time.Millisecond, 288 * time.Millisecond},
		{"… 5 ms a call, one global lock", []string{"call.*=delay=5ms", "global_lock=true"}, 5, 1200 * time.Millisecond, 1188 * time.Millisecond},
	} {
		if err := n.sim.Set(c.scenario...); err != nil {
			return rows, err
		}
		if _, err := n.alone(all8); err != nil { // identities are cached from here on
			return rows, err
		}
		times, err := repeat(c.runs, func() (time.Duration, error) { return n.alone(all8) })
		if err != nil {
			return rows, err
		}
		rows = append(rows, b.timing(c.what, times, c.limit, c.waits))
	}
	return rows, nil
}

// timing makes a row of sorted times: the median is held against the limit. The
// part of the limit that waits for the library is not stretched.
func (b *bench) timing(what string, times []time.Duration, limit, waits time.Duration) row {
	here := b.here(limit, waits)
	return row{what, spread(times), ms(limit) + ", here " + ms(here), p(times, 0.5) <= limit, p(times, 0.5) <= here}
}

// here is a limit on this machine.
func (b *bench) here(limit, waits time.Duration) time.Duration {
	return waits + time.Duration(float64(limit-waits)*b.stretch)
}

func spread(times []time.Duration) string {
	return fmt.Sprintf("p50 %s, p99 %s (%d runs)", ms(p(times, 0.5)), ms(p(times, 0.99)), len(times))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.3g ms", float64(d)/1e6) }

// epilogs are the times for which a node stays COMPLETING.
func epilogs(b *bench, dir string) (rows []row, err error) {
	for _, c := range []struct {
		what    string
		sampler bool
		limit   time.Duration
	}{
		{"epilog, 8 GPUs, live sampler", true, 100 * time.Millisecond},
		{"epilog, 8 GPUs, no sampler", false, 200 * time.Millisecond},
	} {
		n, err := newNode(filepath.Join(dir, fmt.Sprint(c.sampler)), b.bin, "dgx-h100")
		if err != nil {
			return rows, err
		}
		if err := n.configure(c.sampler); err != nil {
			return rows, err
		}
		times, err := repeat(20, func() (time.Duration, error) {
			job, _, err := n.prolog(all8)
			if err != nil {
				return 0, err
			}
			time.Sleep(700 * time.Millisecond)
			return n.epilog(job, all8)
		})
		if err != nil {
			return rows, err
		}
		rows = append(rows, b.timing(c.what, times, c.limit, 0))
	}
	return rows, nil
}

// reports is the time to print a page about one job among many.
func reports(b *bench, dir string) (rows []row, err error) {
	n, err := newNode(dir, b.bin, "dgx-h100")
	if err != nil {
		return nil, err
	}
	var job int
	for range 3 {
		if job, _, err = n.prolog(all8); err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
		if _, err := n.epilog(job, all8); err != nil {
			return nil, err
		}
	}
	times, err := repeat(100, func() (time.Duration, error) {
		took, _, err := n.run(nil, "gpu-accounting", "report", fmt.Sprint(job))
		return took, err
	})
	if err != nil {
		return nil, err
	}
	return []row{b.timing("gpu-accounting report", times, 15*time.Millisecond, 0)}, nil
}

// cached is what NHC and monitoring wait for: the last verdict, from a file.
func cached(b *bench, dir string) (rows []row, err error) {
	n, err := newNode(dir, b.bin, "dgx-h100")
	if err != nil {
		return nil, err
	}
	if _, _, err := n.run(nil, "gpu-healthcheck", "--quiet"); err != nil {
		return nil, err
	}
	times, err := repeat(100, func() (time.Duration, error) {
		took, _, err := n.run(nil, "gpu-healthcheck", "--cached")
		return took, err
	})
	if err != nil {
		return nil, err
	}
	return []row{b.timing("gpu-healthcheck --cached", times, 5*time.Millisecond, 0)}, nil
}
