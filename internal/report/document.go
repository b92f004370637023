package report

import (
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/record"
)

// Schema names the JSON form of a report.
const Schema = "gpuhooks.report/1"

// Document is a report as JSON: what the page says, and the records it is made of.
type Document struct {
	Schema  string                      `json:"schema"`
	JobID   uint32                      `json:"job_id"`
	Name    string                      `json:"name,omitempty"` // as asked for, where that is not the number
	Restart int                         `json:"restart"`        // of the run that is reported
	Earlier int                         `json:"earlier_runs"`
	GPUs    int                         `json:"gpus"`
	Unused  gpu.Opt[int]                `json:"gpus_unused"` // null where it cannot be told
	Totals  map[string]gpu.Opt[float64] `json:"totals"`      // every field over all GPUs; null where none is known
	Notes   []Note                      `json:"notes"`
	Quality []string                    `json:"quality"`
	Records []record.Record             `json:"records"` // of that run, by node
}

// JSON is the report about one job. All records must be of that job.
func JSON(records []record.Record, o Options) Document {
	j := Newest(records)
	d := Document{
		Schema: Schema, Name: record.Clean(o.Name), Earlier: j.Earlier, GPUs: len(j.devices()),
		Totals: map[string]gpu.Opt[float64]{}, Notes: Notes(j), Quality: Quality(j), Records: j.Records,
	}
	if len(j.Records) > 0 {
		d.JobID, d.Restart = j.Records[0].Job.ID, j.Records[0].Job.Restart
	}
	unused, judged := 0, 0
	for _, g := range j.devices() {
		if _, ok := g.activity(); ok {
			judged++
		}
		if g.unused() {
			unused++
		}
	}
	if judged == d.GPUs && judged > 0 {
		d.Unused = gpu.Some(unused)
	}
	for _, f := range record.Fields() {
		d.Totals[f.Field] = j.fold(f.Field).Value
	}
	if d.Notes == nil {
		d.Notes = []Note{}
	}
	if d.Quality == nil {
		d.Quality = []string{}
	}
	return d
}
