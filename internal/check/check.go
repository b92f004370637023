// Package check holds what is checked on a node: one file a check, each a value
// with its name, tier, class and documentation, each a pure function of what was
// read. A new check is one file and one line in all.go.
package check

import (
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

// Outcome is what a check found. "Could not look" is Error: it is never Pass.
type Outcome string

// The outcomes, from best to worst.
const (
	Skip  Outcome = "skip" // does not apply
	Pass  Outcome = "pass"
	Warn  Outcome = "warn"
	Error Outcome = "error" // could not look
	Fail  Outcome = "fail"
)

// Class says who must act. Undrain and the brake depend on it.
type Class string

// The classes.
const (
	Hardware Class = "hardware"
	Driver   Class = "driver"
	Fabric   Class = "fabric"
	Config   Class = "config"
	Dirty    Class = "dirty" // left over by a job
)

// Check is one thing that is looked at.
type Check struct {
	Name    string // kebab-case, the key under [checks] in gpuhooks.toml
	Code    string // short and upper case: what `sinfo -R` shows first
	Tier    int    // 0 or 1
	Class   Class
	Default config.Policy // what Fail leads to unless the configuration says otherwise
	OnError config.Policy // what Error leads to; ignore means logged and open
	Count   bool          // counts the node's devices: skipped where a job's cgroup hides some
	Doc     Doc
	Run     func(Input) []Finding // no finding at all is Pass
}

// Doc is what `gpu-healthcheck explain NAME` prints.
type Doc struct {
	What string // one sentence: what is looked at
	Why  string // what goes wrong when it is not
	Cure string // what to do when it fails
}

// Finding is one result about one GPU, or about the node (GPU nil).
type Finding struct {
	Check   string        `json:"check"`
	Code    string        `json:"code"`
	Class   Class         `json:"class"`
	Outcome Outcome       `json:"outcome"`
	GPU     *gpu.Identity `json:"gpu,omitempty"`
	Text    string        `json:"text"` // lower case, one line, no full stop
}

// Input is everything a check may look at. Checks judge all GPUs in Node.GPUs;
// the caller has already left only those that it wants judged.
type Input struct {
	Node     gpu.Node
	Answer   Answer      // how the probe answered
	Events   []xid.Event // since the last good look, cancelled ones already left out
	Lost     bool        // kernel log records were overwritten before they were read
	Memory   Memory      // what the node remembers
	Expected Expected
	Procs    ProcRules
	Now      time.Time
	Catalog  func() xid.Catalogue // parsed on first use
}

// Answer says how the reading came about.
type Answer string

// The answers of a probe.
const (
	AnswerWhole   Answer = "whole"
	AnswerPartial Answer = "partial"  // the deadline came first
	AnswerNone    Answer = "none"     // nothing beyond the hello, or not even that
	AnswerStuck   Answer = "stuck"    // the probe sits in state D after KILL, or an older one still does
	AnswerCrash   Answer = "crash"    // it died
	AnswerGarbage Answer = "garbage"  // not our protocol, or another version
	AnswerNoProbe Answer = "no-probe" // could not be started
)

// Memory is what earlier looks left.
type Memory struct {
	Good       map[string]gpu.Counters // by GPU UUID: counters at the last good look of this driver load
	Seen       []gpu.Process           // processes without a job, seen by an earlier hook at least 3 s ago
	NoAnswer   time.Time               // when a probe last did not answer in this boot; zero if never since an answer
	FirstLook  bool                    // nobody has looked since boot or driver load
	JobGPUs    map[string][]string     // live runs: job id -> UUIDs
	SharedGPUs []string                // UUIDs on which several jobs may run
}

// Expected is what this node is to have.
type Expected struct {
	GPUs      gpu.Opt[int] // from gres.conf
	Minors    []int        // /dev/nvidiaN named by gres.conf
	JobCgroup bool         // we run inside a job's cgroup (PrologFlags=RunInJob)
}

// ProcRules says which processes are no left-overs.
type ProcRules struct {
	Allow      []string // names
	HasCgroups bool     // jobs have cgroups, so that a process can be attributed
	JobUIDs    []int    // users with a live job here
}
