// Package runs keeps one directory per job run on this node:
//
//	<run>/runs/<job>.<restart>/
//	  job.json   prolog: who, which GPUs, start counters and their time
//	  sums.json  sampler: what it has accumulated so far, or at the end
//	  end        epilog asks the sampler to finish this run
//	  done       epilog has spooled the record
//	  refused    instead of job.json: the prolog refused the job
//
// Each file has one writer and is replaced by rename, so that a reader sees all
// of it or nothing. The boot id is inside: a directory of another boot is never
// mixed with this one's.
package runs

import (
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/xid"
)

// Schemas of the files. Readers accept the previous version as well.
const (
	JobSchema  = "gpuhooks.run/1"
	SumsSchema = "gpuhooks.sums/1"
)

// Job is job.json.
type Job struct {
	Schema     string           `json:"schema"`
	BootID     string           `json:"boot_id"`
	DriverLoad string           `json:"driver_load"`
	Job        slurm.Job        `json:"job"`
	Resolution slurm.Resolution `json:"resolution"`
	Start      Point            `json:"start"`
	KernelSeq  uint64           `json:"kernel_seq"` // kernel log read up to here at the start
}

// Point is the counters of the job's devices at one time.
type Point struct {
	Time    time.Time     `json:"time"` // UTC; when the counters were read
	Devices []DevicePoint `json:"devices"`
}

// DevicePoint is one device's counters. Instance is set for MIG.
type DevicePoint struct {
	gpu.Identity
	Instance   *gpu.Instance   `json:"instance,omitempty"` // without readings
	Counters   gpu.Counters    `json:"counters"`
	Memory     gpu.Opt[uint64] `json:"memory_total_bytes"`
	MemoryUsed gpu.Opt[uint64] `json:"memory_used_bytes"` // before the job: what others left
	Faults     []gpu.Fault     `json:"faults,omitempty"`
}

// Sums is sums.json: what the sampler knows of a run.
type Sums struct {
	Schema           string       `json:"schema"`
	BootID           string       `json:"boot_id"`
	Version          string       `json:"version"` // of the sampler
	From             time.Time    `json:"from"`    // first sample of the run
	To               time.Time    `json:"to"`      // last one
	Final            bool         `json:"final"`   // written after `end`
	Tick             float64      `json:"tick_seconds"`
	Devices          []DeviceSums `json:"devices"`
	Events           []xid.Event  `json:"events,omitempty"`
	EventsIncomplete bool         `json:"events_incomplete,omitempty"` // kernel log overrun
	KernelSeq        uint64       `json:"kernel_seq"`
}

// DeviceSums is what was accumulated for one device of a run.
type DeviceSums struct {
	UUID        string                  `json:"uuid"`            // of the GPU or the MIG instance
	Source      gpu.Source              `json:"source"`          // of the activity metrics
	Covered     float64                 `json:"covered_seconds"` // time with samples
	Gaps        int                     `json:"gaps"`            // intervals longer than three ticks, or failed
	Resets      int                     `json:"resets"`          // GPU resets or driver reloads seen
	Stats       map[gpu.Metric]Stat     `json:"stats"`
	Idle        gpu.Opt[float64]        `json:"idle_seconds"` // no activity (SM active, else utilisation, below 1 %)
	LongestIdle gpu.Opt[float64]        `json:"longest_idle_seconds"`
	LastActive  gpu.Opt[time.Time]      `json:"last_active"`
	Series      map[gpu.Metric][]Sample `json:"series,omitempty"`    // thinned
	Processes   []gpu.Process           `json:"processes,omitempty"` // seen during the run, bounded
	Faults      []gpu.Fault             `json:"faults,omitempty"`
}

// Stat summarises one metric over a run, weighted by time.
type Stat struct {
	Mean    float64 `json:"mean"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	P05     float64 `json:"p05"`
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	Seconds float64 `json:"seconds"` // time that the mean stands for
	Samples int     `json:"samples"`
}

// Sample is one point of a thinned series: the mean over the interval that ends
// at T seconds after From.
type Sample struct {
	T float64 `json:"t"`
	V float64 `json:"v"`
}
