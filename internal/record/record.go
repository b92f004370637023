// Package record is the job record: what one run of a job did with the GPUs of
// one node. Build makes it from what prolog, sampler and epilog left; it does no
// I/O. The field table (fields.go) says which values a GPU has; JSON, line
// protocol, reports and docs/record.md all come from it.
package record

import (
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
)

// Schema names the format. A field never changes its type or meaning under it.
const Schema = "gpuhooks.job/1"

// Record is one run of a job on one node.
type Record struct {
	Schema  string             `json:"schema"`          // gpuhooks.job/1
	Version string             `json:"version"`         // of the program that wrote it
	Time    time.Time          `json:"time"`            // when it was made, UTC; times its lines
	Cluster string             `json:"cluster"`         // Slurm's name of the cluster
	Node    string             `json:"node"`            // SLURMD_NODENAME
	BootID  string             `json:"boot_id"`         // of the boot in which it ran
	Job     Job                `json:"job"`             // who ran
	State   State              `json:"state"`           // how it ended
	Start   gpu.Opt[time.Time] `json:"start"`           // of the measurement: when the start counters were read
	End     gpu.Opt[time.Time] `json:"end"`             // when the end counters were read
	Elapsed gpu.Opt[float64]   `json:"elapsed_seconds"` // between the two; null where the clock was set back
	GPUs    []GPU              `json:"gpus"`            // in the order in which the job got them
	Events  []Event            `json:"events"`          // in order of time
	Quality Quality            `json:"quality"`         // how far the record can be trusted
}

// Job is who ran. What slurmd does not tell its scripts (name, array ids) is
// not here: gpu-accounting asks Slurm for it.
type Job struct {
	ID        uint32          `json:"job_id"`              // Slurm's number of the job; an array task has its own
	Restart   int             `json:"restart"`             // how often it had been requeued before this run
	SLUID     string          `json:"sluid,omitempty"`     // Slurm 25.11 and newer: unique per run
	HetJobID  gpu.Opt[uint32] `json:"het_job_id,omitzero"` // leader of a heterogeneous job
	User      string          `json:"user"`                // name
	UID       gpu.Opt[uint32] `json:"uid"`                 // number
	Account   string          `json:"account"`             // Slurm account
	Partition string          `json:"partition"`           // Slurm partition
	QOS       string          `json:"qos,omitempty"`       // Slurm 26.05 and newer
	NodeCount gpu.Opt[int]    `json:"node_count"`          // nodes of the whole job
	NodeList  string          `json:"node_list"`           // compact, as Slurm writes it
}

// Word is how a run ended, as far as slurmd tells a node.
type Word string

// The words. Slurm alone knows whether a signal was a cancellation, a time
// limit or a crash.
const (
	Completed Word = "completed" // exit code 0; Slurm 22.05 tells the same of a cancelled job
	Failed    Word = "failed"    // another exit code
	Signalled Word = "signalled" // ended by a signal: cancelled, out of time or crashed
	Ended     Word = "ended"     // slurmd did not tell how
	NodeLost  Word = "node-lost" // the node went down under it
)

// State is how the run ended.
type State struct {
	Word     Word         `json:"word"`      // completed, failed, signalled, ended, node-lost
	ExitCode gpu.Opt[int] `json:"exit_code"` // of the batch script
	Signal   gpu.Opt[int] `json:"signal"`    // that ended it, 0: none
}

// GPU is one GPU of the run, or one MIG instance.
type GPU struct {
	Index   int              `json:"index"`            // NVML order; -1 where only Slurm knew the GPU
	Minor   gpu.Opt[int]     `json:"minor"`            // /dev/nvidiaN
	UUID    string           `json:"uuid"`             // of the card
	PCI     string           `json:"pci"`              // address as NVML prints it
	Model   string           `json:"model"`            // NVIDIA's name
	Serial  gpu.Opt[string]  `json:"serial,omitzero"`  // of the board
	MIG     *MIG             `json:"mig,omitempty"`    // for a MIG instance
	Shared  bool             `json:"shared,omitempty"` // other jobs may have run on it at the same time
	Values  map[string]Value `json:"values"`           // by field name
	Quality GPUQuality       `json:"quality"`          // how far this GPU's values can be trusted

	Processes []Process                    `json:"processes,omitempty"` // seen on the GPU, at most 16
	Series    map[gpu.Metric][]runs.Sample `json:"series,omitempty"`    // thinned; seconds after Start
}

// MIG says which instance of the card it was.
type MIG struct {
	GI      int    `json:"gi"`      // GPU instance
	CI      int    `json:"ci"`      // compute instance
	UUID    string `json:"uuid"`    // of the instance
	Profile string `json:"profile"` // 2g.20gb
}

// Process is a process that was seen on the GPU.
type Process struct {
	PID    int             `json:"pid"`          // process id
	Name   string          `json:"name"`         // chosen by the job
	Memory gpu.Opt[uint64] `json:"memory_bytes"` // in use when last seen
}

// Value is one field of one GPU. An unknown value is null, has source none and
// says why.
type Value struct {
	Value  gpu.Opt[float64] `json:"value"`           // null where it is unknown
	Source gpu.Source       `json:"source"`          // counter, gpm, dcgm, nvml, none
	Flags  []Flag           `json:"flags,omitempty"` // what restricts its meaning
	Why    Why              `json:"why,omitempty"`   // only where it is unknown
}

// Flag restricts what a value means.
type Flag string

// The flags.
const (
	LowerBound Flag = "lower-bound" // a counter was reset, or time is missing: at least this much
	Estimated  Flag = "estimated"   // a MIG instance's share of the whole card
	Integrated Flag = "integrated"  // from samples of a rate, not from a counter
	WholeCard  Flag = "whole-card"  // of the card, of which the job had one MIG instance
	SharedGPU  Flag = "shared"      // of a GPU that other jobs may have used too
)

// Why says why a value is unknown.
type Why string

// The reasons.
const (
	WhyNoStart      Why = "no-start"      // nothing was read when the job started
	WhyNoEnd        Why = "no-end"        // nothing could be read when it ended
	WhyLost         Why = "gpu-lost"      // the GPU had fallen off the bus
	WhyNoSamples    Why = "no-samples"    // the sampler did not run, or the job was too short for it
	WhyNotSupported Why = "not-supported" // the card or driver does not tell
	WhyNoGPM        Why = "no-gpm"        // needs Hopper or newer, or DCGM
	WhyMIG          Why = "mig"           // NVIDIA tells it only for a whole card
	WhyImplausible  Why = "implausible"   // the driver's answer cannot be true
)

// Event is something that happened to a GPU during the run.
type Event struct {
	Time    gpu.Opt[time.Time] `json:"time"`              // of the first; null where the kernel log has none
	Until   gpu.Opt[time.Time] `json:"until,omitzero"`    // of the last one, where there were several
	Count   int                `json:"count"`             // how often
	Kind    string             `json:"kind"`              // xid, sxid, fallen, gsp, mismatch; or check: found by the epilog's checks
	Code    int                `json:"code"`              // XID or SXid number, 0 where there is none
	Check   string             `json:"check,omitempty"`   // name of the check
	PCI     string             `json:"pci"`               // of the card, or of the NVSwitch
	UUID    string             `json:"uuid,omitempty"`    // of the card
	PID     gpu.Opt[int]       `json:"pid,omitzero"`      // process that the driver named
	Process string             `json:"process,omitempty"` // its name, chosen by the job
	Text    string             `json:"text,omitempty"`    // the driver's or the check's words
	Meaning string             `json:"meaning"`           // in plain words
	Action  string             `json:"action,omitempty"`  // what NVIDIA's catalogue asks for
	Cause   Cause              `json:"cause"`             // whose matter it is
}

// Cause says whose matter an event is.
type Cause string

// The causes.
const (
	CauseApp      Cause = "application" // the program did it
	CauseEither   Cause = "either"      // the program, or the hardware
	CauseHardware Cause = "hardware"    // hardware, firmware or driver: for the administrators
	CauseInfo     Cause = "info"        // a note; nothing to do
	CauseUnknown  Cause = "unknown"
)

// Quality says how far the record can be trusted.
type Quality struct {
	NoStart          bool   `json:"no_start,omitempty"`          // no state from prolog: no counter deltas
	NoEnd            bool   `json:"no_end,omitempty"`            // the end counters could not be read
	SamplerMissing   bool   `json:"sampler_missing,omitempty"`   // nobody sampled
	SamplerStale     bool   `json:"sampler_stale,omitempty"`     // its last sums were not the final ones
	EventsIncomplete bool   `json:"events_incomplete,omitempty"` // kernel log records were overwritten unread
	ShortJob         bool   `json:"short_job,omitempty"`         // shorter than two ticks: averages stand on few samples
	Sharing          string `json:"sharing,omitempty"`           // no, mps, shard (the node has shards), unknown
	SharedGPU        bool   `json:"shared_gpu,omitempty"`        // at least one GPU may have been used by others too
	NodeLost         bool   `json:"node_lost,omitempty"`         // finished after a reboot, from the last checkpoint
	DriverReloaded   bool   `json:"driver_reloaded,omitempty"`   // counters began anew during the run
	ConfigBroken     bool   `json:"config_broken,omitempty"`     // gpuhooks.toml could not be used: the last good copy or the defaults held
	Unresolved       string `json:"unresolved,omitempty"`        // why the job's GPUs could not be told
}

// GPUQuality is the same for one GPU.
type GPUQuality struct {
	Covered       gpu.Opt[float64] `json:"covered_seconds"`          // time with samples
	Coverage      gpu.Opt[float64] `json:"coverage_ratio"`           // of the run
	Gaps          gpu.Opt[int]     `json:"gaps"`                     // intervals without samples
	Resets        gpu.Opt[int]     `json:"resets"`                   // GPU resets seen by the sampler
	CounterResets []gpu.Counter    `json:"counter_resets,omitempty"` // counters that began anew
	Faults        []gpu.Fault      `json:"faults,omitempty"`         // readings that failed
}

// Get returns a field's value; a field that is not there (a record of an older
// version) is unknown.
func (g *GPU) Get(field string) (float64, bool) { return g.Values[field].Value.Get() }

// Key identifies the device: the MIG instance's UUID, else the card's.
func (g *GPU) Key() string {
	if g.MIG != nil {
		return g.MIG.UUID
	}
	return g.UUID
}

// Has says whether a value carries the flag.
func (v Value) Has(f Flag) bool {
	for _, x := range v.Flags {
		if x == f {
			return true
		}
	}
	return false
}
