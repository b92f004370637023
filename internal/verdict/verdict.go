// Package verdict says what the outcomes of the checks mean: which checks run,
// what a failure of each leads to by the site's policy, and what is to be done
// with the node. It decides and does nothing.
package verdict

import (
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

// Schema is the format of a Verdict as JSON.
const Schema = "gpuhooks.verdict/1"

// Hook is who asks.
type Hook string

// The hooks.
const (
	Prolog      Hook = "prolog"
	Epilog      Hook = "epilog"
	HealthCheck Hook = "healthcheck"
)

// Action is what is to be done with the node.
type Action string

// The actions.
const (
	None       Action = "none"
	WouldDrain Action = "would-drain" // observe mode: say so and do nothing
	Drain      Action = "drain"
)

// Verdict is what the checks came to.
type Verdict struct {
	Schema   string          `json:"schema"`
	Time     time.Time       `json:"time"` // of the reading
	Hook     Hook            `json:"hook"`
	Tier     int             `json:"tier"`
	Answer   gpu.Answer      `json:"answer"`
	Outcome  check.Outcome   `json:"outcome"` // the worst one; Skip when there was nothing to judge
	Action   Action          `json:"action"`
	Code     string          `json:"code,omitempty"`     // of the finding that decides
	Class    check.Class     `json:"class,omitempty"`    // of the finding that decides; hardware if any in the reason is
	Reason   string          `json:"reason,omitempty"`   // "CODE gpu=3 GPU-…; …": what stands behind "[HC] " in Slurm's reason
	OwnLost  bool            `json:"own_lost,omitempty"` // one of the judged job's own GPUs is lost: passes the brake
	GPUs     []gpu.Identity  `json:"gpus,omitempty"`     // that the deciding findings name
	Findings []Finding       `json:"findings"`           // worst first: what failed, could not be looked at, or warns; never null
	Notes    []check.Finding `json:"notes,omitempty"`    // passes that a person should know of: the board's design, a workstation's habits
	Checks   []Result        `json:"checks"`             // every check, in its fixed order
}

// Finding is a check's finding with what policy makes of it.
type Finding struct {
	check.Finding
	Policy config.Policy `json:"policy"` // drain, warn or ignore: what the finding leads to
	Mode   config.Mode   `json:"mode"`   // of this check
}

// Result is one check's worst outcome after policy.
type Result struct {
	Check   string        `json:"check"`
	Outcome check.Outcome `json:"outcome"`
	Text    string        `json:"text,omitempty"`    // why, unless it passed
	Seconds float64       `json:"seconds,omitempty"` // that it took; unset where it was not run
}

// Acts says whether a finding takes the node out of service where its mode
// lets it.
func (f Finding) Acts() bool { return f.Policy == config.PolicyDrain }
