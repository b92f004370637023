package main

import (
	"errors"
	"io/fs"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/runs"
)

// How long an epilog waits for the sampler's final sums.
const (
	sumsWait = 80 * time.Millisecond
	sumsPoll = 2 * time.Millisecond
)

// askSampler asks for the final sums of a run; the answer comes while the end
// counters are read. The function that it returns waits for them, 80 ms from the
// asking at most, and gives what there is: unfinished sums are better than none.
func (h *hook) askSampler(n runs.Name, live bool) func() *runs.Sums {
	if !live {
		return func() *runs.Sums { return nil }
	}
	until := time.Now().Add(sumsWait)
	if err := h.dir.MarkEnd(n, runs.Mark{BootID: h.boot, Time: h.env.Now().UTC()}); err != nil {
		h.log.Warnf("job %d: the sampler could not be asked to finish: %v", h.job.ID, err)
		until = time.Now()
	}
	return func() *runs.Sums {
		for {
			s, err := h.dir.ReadSums(n, h.boot)
			switch {
			case err == nil && s.Final:
				return &s
			case time.Now().Before(until) && driver.SamplerHolds(h.cfg.Paths.Run):
				time.Sleep(sumsPoll)
				continue
			case err == nil:
				h.log.Warnf("job %d: the sampler did not finish it: its last sums are of %s", h.job.ID, s.To.UTC().Format(time.RFC3339))
				return &s
			case errors.Is(err, fs.ErrNotExist):
				h.log.Warnf("job %d: nobody has sampled it", h.job.ID)
			default:
				h.log.Warnf("job %d: no samples: %v", h.job.ID, err)
			}
			return nil
		}
	}
}
