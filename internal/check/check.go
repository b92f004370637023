// Package check holds what is checked on a node: one file a check, each a value
// with its name, tier, class and documentation, each a pure function of what was
// read. A new check is one file and one line in all.go.
package check

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
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

// Worse says whether o is worse than p; an unknown outcome is as bad as Error.
func (o Outcome) Worse(p Outcome) bool { return o.rank() > p.rank() }

func (o Outcome) rank() int {
	switch o {
	case Skip:
		return 0
	case Pass:
		return 1
	case Warn:
		return 2
	case Fail:
		return 4
	}
	return 3
}

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
	Tier    int    // from which tier on there is something to look at: 0 or 1
	Class   Class
	Default config.Policy // what Fail leads to unless the configuration says otherwise
	OnError config.Policy // what Error leads to; "" is ignore: logged and open
	Count   bool          // counts the node's devices: skipped where a job's cgroup hides some
	Host    bool          // looks at gpu.Host, which only the health check reads: skipped elsewhere
	Doc     Doc
	Run     func(Input) []Finding // no finding at all is Pass
}

// Doc is what `gpu-healthcheck explain NAME` prints.
type Doc struct {
	What string // one sentence: what is looked at
	Why  string // what goes wrong when it is not
	Cure string // what to do when it fails
}

// Finding is one result about one GPU, or about the node (GPU nil). A check
// fills Outcome, GPU and Text, and Code or Class only where they differ from its
// own; whoever runs it fills in the rest. A Pass with a text is a note: told to
// people, and nothing against the GPU.
type Finding struct {
	Check   string        `json:"check"`
	Code    string        `json:"code"`
	Class   Class         `json:"class"`
	Outcome Outcome       `json:"outcome"`
	GPU     *gpu.Identity `json:"gpu,omitempty"`
	Text    string        `json:"text"` // lower case, one line, no full stop
}
