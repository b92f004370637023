package drain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"gpuhooks/internal/slurmctl"
)

// Slurm is what draining asks of Slurm; slurmctl.Client answers it.
type Slurm interface {
	Node(ctx context.Context, name string) (slurmctl.Node, error)
	Nodes(ctx context.Context) ([]slurmctl.Node, error)
	Drain(ctx context.Context, name, reason string) error
	Undrain(ctx context.Context, name string) error
}

// Request says what to drain and why.
type Request struct {
	Node    string
	Code    string        // the first code of Reason: the brake counts by it
	Reason  string        // from Reason()
	OwnLost bool          // a GPU of the job's own is lost: passes the brake
	Brake   Brake         // see Limit
	Delay   time.Duration // a random part of it passes first, so that nodes that fail together do not ask together
	Settle  time.Duration // passes before the nodes are counted again: by then those who counted before us have drained
	Now     time.Time     // for the brake's window
}

// Outcome is what became of a Request.
type Outcome string

// The outcomes.
const (
	Drained     Outcome = "drained"
	AlreadyOurs Outcome = "already-ours" // by us, for this or another finding
	Foreign     Outcome = "foreign"      // by somebody else, whose reason stays
	Braked      Outcome = "braked"       // too many nodes with this code: not drained
	Undone      Outcome = "undone"       // drained, then found to be one too many
	NoAnswer    Outcome = "no-answer"    // Slurm did not answer, or refused
)

// Result is what was done, with texts for the log in order.
type Result struct {
	Outcome Outcome
	Reason  string        // the node's reason as far as it is known
	Node    slurmctl.Node // as Slurm told it first
	Texts   []string
}

// Refuses says whether the job must not start here: the node is drained, or
// Slurm has to do it because we could not.
func (r Result) Refuses() bool { return r.Outcome != Braked && r.Outcome != Undone }

func (r *Result) say(format string, args ...any) {
	r.Texts = append(r.Texts, fmt.Sprintf(format, args...))
}

func (r Result) end(o Outcome, format string, args ...any) Result {
	r.Outcome = o
	r.say(format, args...)
	return r
}

// Act drains a node by the rules of DESIGN §6: look, count, drain, look again,
// count again. It never overwrites the reason of a node that somebody else has
// drained. ctx bounds all of it together; the caller does not call it in
// observe mode.
func Act(ctx context.Context, s Slurm, q Request) Result {
	var r Result
	if err := wait(ctx, part(q.Delay)); err != nil {
		return r.end(NoAnswer, "not drained: no time was left")
	}
	n, err := s.Node(ctx, q.Node)
	if err != nil {
		return r.end(NoAnswer, "not drained: %v", err)
	}
	r.Reason, r.Node = n.Reason, n
	switch {
	case n.Drained() && Ours(n.Reason):
		return r.end(AlreadyOurs, "%s is already drained by us: %s", q.Node, n.Reason)
	case n.Drained():
		return r.end(Foreign, "%s is already drained by %s, whose reason stays: %s", q.Node, n.ReasonUser, n.Reason)
	}
	if !q.OwnLost {
		nodes, err := s.Nodes(ctx)
		if err != nil {
			return r.end(NoAnswer, "not drained: the brake could not count: %v", err)
		}
		if held, count, limit := q.Brake.holds(nodes, q.Node, q.Code, q.Now); held {
			return r.end(Braked, "not drained: %d nodes are already drained with %s, the brake allows %d", count, q.Code, limit)
		}
	}
	reason := q.reasonBeside(n.Reason)
	if err := s.Drain(ctx, q.Node, reason); err != nil {
		return r.end(NoAnswer, "not drained: %v", err)
	}
	r.say("drained %s: %s", q.Node, reason)
	return q.confirm(ctx, s, r, reason, !q.OwnLost && !foreignNote(n.Reason))
}

// reasonBeside is what to write where a node that is not drained has a reason:
// ours and Slurm's are replaced, a person's note is kept behind ours.
func (q Request) reasonBeside(old string) string {
	reason := slurmctl.PlainReason(q.Reason)
	if !Ours(reason) {
		reason = Reason([]Item{{Code: q.Code, Text: reason}})
	}
	if !foreignNote(old) {
		return reason
	}
	return slurmctl.PlainReason(reason + "; was: " + old)
}

// foreignNote says whether a node that is not drained has a reason that a person
// wrote. Undraining would clear it.
func foreignNote(reason string) bool {
	return reason != "" && !Ours(reason) && reason != "Not responding"
}

// confirm looks at the node again and, where it may, undoes the drain when nodes
// that drained at the same moment are too many together.
func (q Request) confirm(ctx context.Context, s Slurm, r Result, reason string, mayUndo bool) Result {
	n, err := s.Node(ctx, q.Node)
	if err != nil {
		r.Reason = reason
		return r.end(Drained, "could not read it back: %v", err)
	}
	r.Reason = n.Reason
	switch {
	case !n.Drained():
		return r.end(NoAnswer, "%s is not drained although Slurm accepted it: state %s", q.Node, n.State)
	case n.Reason != reason && !Ours(n.Reason):
		return r.end(Foreign, "%s changed the reason at the same time: %s", n.ReasonUser, n.Reason)
	case !mayUndo:
		r.Outcome = Drained
		return r
	}
	// Slurm's times are in seconds, so names decide within one: who counted too early
	// would not see a node that drains a moment later and comes before it.
	if err := wait(ctx, q.Settle); err != nil {
		return r.end(Drained, "could not count again: no time was left")
	}
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return r.end(Drained, "could not count again: %v", err)
	}
	over, count, limit := q.Brake.exceeded(nodes, q.Node, q.Code, q.Now)
	if !over {
		r.Outcome = Drained
		return r
	}
	if err := s.Undrain(ctx, q.Node); err != nil {
		return r.end(Drained, "%d nodes are drained with %s, the brake allows %d, but undoing failed: %v", count, q.Code, limit, err)
	}
	r.Reason = ""
	return r.end(Undone, "undrained again: %d nodes were drained with %s at once, the brake allows %d", count, q.Code, limit)
}

// part is a random part of d.
func part(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// wait sleeps for d, or until there is no time left.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
