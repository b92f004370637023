// Package line turns records and health into line protocol, the one wire format:
//
//	slurm_gpu_job     one line per GPU of a run, with every field of the record
//	slurm_gpu_event   one line per event of a run
//	slurm_gpu_sample  the thinned series of a run
//	slurm_gpu_health  at a look one line about the node, one per GPU, one per check
//
// Tags are few and bounded; job id, user and the like are fields. A value that
// is not known is absent. A field never changes its type.
package line

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"gpuhooks/internal/record"
)

// The measurements.
const (
	JobMeasurement    = "slurm_gpu_job"
	EventMeasurement  = "slurm_gpu_event"
	SampleMeasurement = "slurm_gpu_sample"
	HealthMeasurement = "slurm_gpu_health"
)

// Record encodes a record: its jobs, then events, then samples.
func Record(r record.Record) ([]byte, error) {
	e := newEncoder()
	for _, g := range r.GPUs {
		e.job(r, g)
	}
	for i, ev := range r.Events {
		e.event(r, ev, i)
	}
	for _, g := range r.GPUs {
		e.samples(r, g)
	}
	if err := e.Err(); err != nil {
		return nil, fmt.Errorf("line protocol of job %d: %w", r.Job.ID, err)
	}
	return e.Bytes(), nil
}

// encoder adds to the library's what all our lines need: sorted tags without
// empty values, cleaned strings, no NaN.
type encoder struct{ lineprotocol.Encoder }

func newEncoder() *encoder {
	e := &encoder{}
	e.SetPrecision(lineprotocol.Nanosecond)
	return e
}

type tag struct{ key, value string }

func (e *encoder) start(measurement string, tags ...tag) {
	e.StartLine(measurement)
	sort.Slice(tags, func(i, j int) bool { return tags[i].key < tags[j].key })
	for _, t := range tags {
		if v := record.Clean(t.value); v != "" {
			e.AddTag(t.key, v)
		}
	}
}

func (e *encoder) integer(key string, v int64) { e.AddField(key, lineprotocol.IntValue(v)) }
func (e *encoder) bool(key string, v bool)     { e.AddField(key, lineprotocol.BoolValue(v)) }

// text adds a string, unless it is empty.
func (e *encoder) text(key, v string) {
	if value, ok := lineprotocol.StringValue(record.Clean(v)); ok && v != "" {
		e.AddField(key, value)
	}
}

// float adds a number with at most six decimals, unless it is none.
func (e *encoder) float(key string, v float64) { e.rounded(key, v, 1e6) }

// nanos adds a time in seconds to the nanosecond.
func (e *encoder) nanos(key string, v float64) { e.rounded(key, v, 1e9) }

func (e *encoder) rounded(key string, v, parts float64) {
	if value, ok := lineprotocol.FloatValue(math.Round(v*parts) / parts); ok {
		e.AddField(key, value)
	}
}

// number adds a field of the record's table in the type that the table gives it.
func (e *encoder) number(key string, unit record.Unit, v float64) {
	if unit.Integer() {
		e.integer(key, int64(math.Round(v)))
		return
	}
	e.float(key, v)
}

// deviceTags name the GPU or MIG instance.
func deviceTags(r record.Record, g record.GPU) []tag {
	tags := []tag{{"cluster", r.Cluster}, {"node", r.Node}, {"gpu", strconv.Itoa(g.Index)}, {"uuid", g.Key()}}
	if g.MIG != nil {
		tags = append(tags, tag{"mig", g.MIG.Profile})
	}
	return tags
}

// stamp is the record's time with the job's number in the nanoseconds: jobs that
// share a GPU and end in the same microsecond stay apart where the job id is
// only a field.
func stamp(t time.Time, job uint32) time.Time {
	return t.Truncate(time.Microsecond).Add(time.Duration(job % 1000))
}
