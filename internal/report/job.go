// Package report turns records into what people read: a page for a terminal, or
// JSON. Everything here is a pure function of records. What is not known is
// said to be unknown, with the reason, and is never held against a user.
package report

import (
	"cmp"
	"slices"
	"time"

	"gpuhooks/internal/record"
)

// Job is one run of a job: its records from all nodes that have one.
type Job struct {
	Records []record.Record // of the newest run, by node
	Earlier int             // earlier runs of the job (it was requeued) with records
}

// device is a GPU with the record that it is in.
type device struct {
	*record.GPU
	rec *record.Record
}

// Newest picks the records of the job's newest run, by node. Of two records of
// one node and run the later counts.
func Newest(records []record.Record) Job {
	var j Job
	runs := map[int]bool{}
	newest := -1
	for _, r := range records {
		runs[r.Job.Restart] = true
		newest = max(newest, r.Job.Restart)
	}
	for _, r := range records {
		if r.Job.Restart != newest {
			continue
		}
		if i := slices.IndexFunc(j.Records, func(o record.Record) bool { return o.Node == r.Node }); i < 0 {
			j.Records = append(j.Records, r)
		} else if r.Time.After(j.Records[i].Time) {
			j.Records[i] = r
		}
	}
	slices.SortFunc(j.Records, func(a, b record.Record) int { return cmp.Compare(a.Node, b.Node) })
	j.Earlier = max(len(runs)-1, 0)
	return j
}

func (j Job) devices() []device {
	var out []device
	for i := range j.Records {
		for k := range j.Records[i].GPUs {
			out = append(out, device{&j.Records[i].GPUs[k], &j.Records[i]})
		}
	}
	return out
}

// span is the first start and the longest run time; ok is false where no record
// knows one.
func (j Job) span() (start time.Time, elapsed float64, okStart, okElapsed bool) {
	for _, r := range j.Records {
		if s, ok := r.Start.Get(); ok && (!okStart || s.Before(start)) {
			start, okStart = s, true
		}
		if e, ok := r.Elapsed.Get(); ok {
			elapsed, okElapsed = max(elapsed, e), true
		}
	}
	return start, elapsed, okStart, okElapsed
}

// fold is one field over all GPUs of the job.
func (j Job) fold(field string) record.Folded { return record.FoldGPUs(j.Records, field) }

// judged says whether averages of this GPU may be judged: not of a run of a few
// seconds, and not where a fifth of it was not seen.
func (d device) judged(field string) bool {
	v := d.Values[field]
	elapsed, ok := d.rec.Elapsed.Get()
	if !ok || elapsed < minSeconds || d.rec.Quality.ShortJob || !v.Value.IsSet() || d.Shared {
		return false
	}
	if v.Source == "counter" {
		return true // counters miss nothing
	}
	return d.Quality.Coverage.Or(0) >= minCoverage
}

// activity is the share of the GPU that had work: SM active where it is known,
// else GPU utilisation, which can only show that a GPU was idle.
func (d device) activity() (float64, bool) {
	for _, field := range []string{smActive, gpuUtil} {
		if d.judged(field) {
			return d.Get(field)
		}
	}
	return 0, false
}

// unused says that the GPU certainly did nothing: both measures that are known
// are next to zero.
func (d device) unused() bool {
	a, ok := d.activity()
	if !ok || a >= unusedBelow {
		return false
	}
	u, known := d.Get(gpuUtil)
	return !known || u < unusedBelow
}

// The fields that the page and the rules look at by name.
const (
	smActive   = "sm_active_mean_ratio"
	tensor     = "tensor_active_mean_ratio"
	dram       = "dram_active_mean_ratio"
	gpuUtil    = "gpu_utilization_mean_ratio"
	fp32       = "fp32_active_mean_ratio"
	memoryMax  = "memory_used_max_bytes"
	memorySize = "memory_total_bytes"
	energy     = "energy_joules"
	idleTail   = "idle_tail_seconds"
)
