package line

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/record"
)

func (e *encoder) job(r record.Record, g record.GPU) {
	e.start(JobMeasurement, append(deviceTags(r, g), tag{"model", g.Model}, tag{"partition", r.Job.Partition})...)
	e.run(r)
	e.text("account", r.Job.Account)
	e.text("qos", r.Job.QOS)
	e.text("state", string(r.State.Word))
	e.text("pci", g.PCI)
	if v, ok := r.State.ExitCode.Get(); ok {
		e.integer("exit_code", int64(v))
	}
	if v, ok := r.State.Signal.Get(); ok {
		e.integer("signal", int64(v))
	}
	if v, ok := r.Start.Get(); ok {
		e.integer("start_unix_seconds", v.Unix())
	}
	if v, ok := r.End.Get(); ok {
		e.integer("end_unix_seconds", v.Unix())
	}
	if v, ok := r.Elapsed.Get(); ok {
		e.float("elapsed_seconds", v)
	}
	for _, f := range record.Fields() {
		if v, ok := g.Get(f.Field); ok {
			e.number(f.Field, f.Unit, v)
		}
	}
	e.quality(r, g)
	e.EndLine(stamp(r.Time, r.Job.ID))
}

// run are the fields that say whose line it is.
func (e *encoder) run(r record.Record) {
	e.integer("job_id", int64(r.Job.ID))
	e.integer("restart", int64(r.Job.Restart))
	e.text("user", r.Job.User)
	if v, ok := r.Job.UID.Get(); ok {
		e.integer("uid", int64(v))
	}
}

func (e *encoder) quality(r record.Record, g record.GPU) {
	if v, ok := g.Quality.Coverage.Get(); ok {
		e.float("coverage_ratio", v)
	}
	if v, ok := g.Quality.Gaps.Get(); ok {
		e.integer("gaps", int64(v))
	}
	e.integer("counter_resets", int64(len(g.Quality.CounterResets)))
	e.bool("shared_gpu", g.Shared)
	e.bool("no_start", r.Quality.NoStart)
	e.bool("sampler_missing", r.Quality.SamplerMissing)
	e.bool("events_incomplete", r.Quality.EventsIncomplete)
	e.bool("config_broken", r.Quality.ConfigBroken)
	e.text("sm_active_source", string(g.Values["sm_active_mean_ratio"].Source))
	e.text("energy_source", string(g.Values["energy_joules"].Source))
}

func (e *encoder) event(r record.Record, ev record.Event, n int) {
	e.start(EventMeasurement, tag{"cluster", r.Cluster}, tag{"node", r.Node}, tag{"uuid", ev.UUID},
		tag{"kind", ev.Kind}, tag{"cause", string(ev.Cause)}, tag{"code", strconv.Itoa(ev.Code)})
	e.run(r)
	e.integer("count", int64(ev.Count))
	e.integer("xid", int64(ev.Code)) // as a number for stores that drop strings
	e.text("pci", ev.PCI)
	e.text("check", ev.Check)
	e.text("meaning", ev.Meaning)
	e.text("action", ev.Action)
	e.text("process", ev.Process)
	if v, ok := ev.PID.Get(); ok {
		e.integer("pid", int64(v))
	}
	// The event's place in the record keeps two of one moment apart.
	e.EndLine(stamp(ev.Time.Or(r.Time), r.Job.ID).Add(time.Duration(n) * time.Microsecond))
}

// samples writes one line per moment with every metric that has a value there.
func (e *encoder) samples(r record.Record, g record.GPU) {
	start, ok := r.Start.Get()
	if !ok {
		return
	}
	moments := map[float64]map[gpu.Metric]float64{}
	for m, points := range g.Series {
		for _, p := range points {
			if moments[p.T] == nil {
				moments[p.T] = map[gpu.Metric]float64{}
			}
			moments[p.T][m] = p.V
		}
	}
	for _, t := range slices.Sorted(maps.Keys(moments)) {
		e.start(SampleMeasurement, deviceTags(r, g)...)
		e.integer("job_id", int64(r.Job.ID))
		for _, m := range slices.Sorted(maps.Keys(moments[t])) {
			e.number(string(m), unitOf(m), moments[t][m])
		}
		e.EndLine(stamp(start.Add(time.Duration(t*float64(time.Second))), r.Job.ID))
	}
}

func unitOf(m gpu.Metric) record.Unit {
	if m == gpu.MemoryUsed {
		return record.Bytes
	}
	return record.Ratio // any unit whose values are floats
}
