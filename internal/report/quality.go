package report

import (
	"fmt"
	"strings"

	"gpuhooks/internal/record"
)

// reason says in words why a value is unknown: short, for the inside of a meter.
func reason(w record.Why) string {
	switch w {
	case record.WhyNoStart:
		return "not read at the start"
	case record.WhyNoEnd:
		return "not read at the end"
	case record.WhyLost:
		return "the GPU was lost"
	case record.WhyNoSamples:
		return "nothing was sampled"
	case record.WhyNoGPM:
		return "this GPU does not tell"
	case record.WhyMIG:
		return "not measured for MIG"
	case record.WhyImplausible:
		return "the driver's answer is wrong"
	}
	return "the driver does not tell"
}

// Quality says in plain words what limits the figures. Nothing is said of a run
// that was seen whole.
func Quality(j Job) []string {
	var out []string
	say := func(text string, nodes []string) {
		if len(nodes) == 0 {
			return
		}
		if len(j.Records) > 1 {
			text += " (" + strings.Join(nodes, ", ") + ")"
		}
		out = append(out, text+".")
	}
	nodes := func(has func(record.Quality) bool) []string {
		var list []string
		for _, r := range j.Records {
			if has(r.Quality) {
				list = append(list, record.Clean(r.Node))
			}
		}
		return list
	}
	if n, of := len(j.Records), j.nodeCount(); n < of {
		out = append(out, fmt.Sprintf("These are the records of %d of the job's %d nodes; the others are not here.", n, of))
	}
	if j.Earlier > 0 {
		out = append(out, fmt.Sprintf("The job was requeued; this is its last run (%s earlier).", plural(j.Earlier, "run")))
	}
	say("The run was very short: peaks, memory, GPU-Util and other samples rest on few readings", nodes(func(q record.Quality) bool { return q.ShortJob }))
	say("The node went down during the run: the figures end with its last checkpoint", nodes(func(q record.Quality) bool { return q.NodeLost }))
	say("Nothing was read when the job started, so energy, errors and throttling are not exact", nodes(func(q record.Quality) bool { return q.NoStart }))
	say("Counters could not be read when the job ended", nodes(func(q record.Quality) bool { return q.NoEnd && !q.NodeLost }))
	say("The sampler did not run: peaks, memory and GPU-Util are unknown", nodes(func(q record.Quality) bool { return q.SamplerMissing }))
	say("The last samples are missing", nodes(func(q record.Quality) bool { return q.SamplerStale && !q.SamplerMissing && !q.NodeLost }))
	say("The driver was reloaded or the GPU reset during the run: counters are at least what is shown", nodes(func(q record.Quality) bool { return q.DriverReloaded }))
	say("The kernel log overflowed: there may have been GPU errors that are not shown", nodes(func(q record.Quality) bool { return q.EventsIncomplete }))
	say("The GPU may have been shared with other jobs: the figures may include theirs", nodes(func(q record.Quality) bool { return q.SharedGPU }))
	for _, r := range j.Records {
		if r.Quality.Unresolved != "" {
			say("It is not known which GPUs the job had: "+record.Clean(r.Quality.Unresolved), []string{record.Clean(r.Node)})
		}
	}
	out = append(out, j.coverage()...)
	return append(out, j.unknownActivity()...)
}

// coverage names GPUs of which more than a fifth of the run was not seen.
func (j Job) coverage() []string {
	var hit []device
	least := 1.0
	for _, d := range j.devices() {
		if c, ok := d.Quality.Coverage.Get(); ok && c < minCoverage && !d.rec.Quality.ShortJob && !d.rec.Quality.SamplerMissing {
			hit = append(hit, d)
			least = min(least, c)
		}
	}
	if len(hit) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Samples cover only %s of the run (%s).", percent(least), j.names(hit))}
}

// unknownActivity explains why SM and Tensor activity is not there.
func (j Job) unknownActivity() []string {
	var out []string
	switch j.why(smActive) {
	case record.WhyNoGPM:
		out = append(out, "SM and Tensor activity are unknown: NVIDIA's driver tells them for Hopper and newer GPUs only.")
	case record.WhyImplausible:
		out = append(out, "SM activity is unknown: what the driver answered cannot be true.")
	}
	for _, d := range j.devices() {
		if d.Values[energy].Has(record.Estimated) {
			return append(out, "Energy of a MIG instance is its share of the whole GPU's, an estimate; the driver measures no GPU-Util or power for MIG.")
		}
	}
	for _, d := range j.devices() {
		if d.Values[energy].Has(record.Integrated) {
			return append(out, "Energy was added up from power samples, because there is no reading of the energy counter for the whole run.")
		}
	}
	return out
}

func (j Job) nodeCount() int {
	n := 0
	for _, r := range j.Records {
		n = max(n, r.Job.NodeCount.Or(0))
	}
	return n
}
