package drain

import (
	"context"
	"fmt"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/slurmctl"
)

// Rules say when a node may come back by itself.
type Rules struct {
	Enabled   bool          // off unless a site wants it
	CleanRuns int           // this many clean looks in a row, at least 1
	Hold      time.Duration // and this long since the drain
}

// Streak is what the node remembers of its own drain.
type Streak struct {
	Reason    string    // as we wrote it; "" when we did not drain
	Class     string    // of the failing check: hardware, driver, fabric, config, dirty
	DrainedAt time.Time // when we drained
	Clean     int       // clean looks in a row since
	Touched   bool      // somebody has changed the reason
}

// Ready decides what can be decided without asking Slurm, and says why or why
// not. Hardware never comes back by itself: a person runs `gpu-healthcheck ack`.
func (rules Rules) Ready(s Streak, now time.Time) (bool, string) {
	switch {
	case !rules.Enabled:
		return false, "undraining is not enabled"
	case s.Reason == "":
		return false, "the drain is not ours"
	case s.Touched:
		return false, "somebody has changed the reason since we wrote it"
	case s.Class == "":
		return false, "this version does not know the code: it needs a person: gpu-healthcheck ack"
	case s.Class == string(check.Hardware):
		return false, "a hardware fault needs a person: gpu-healthcheck ack"
	case s.Clean < max(rules.CleanRuns, 1):
		return false, fmt.Sprintf("%d of %d clean runs", s.Clean, max(rules.CleanRuns, 1))
	case now.Sub(s.DrainedAt) < rules.Hold:
		return false, fmt.Sprintf("held until %s", s.DrainedAt.Add(rules.Hold).UTC().Format(time.RFC3339))
	}
	return true, fmt.Sprintf("%d clean runs since %s", s.Clean, s.DrainedAt.UTC().Format(time.RFC3339))
}

// MayUndrain decides whether the node, as Slurm tells of it, may be given back
// now, and says why or why not.
func MayUndrain(rules Rules, n slurmctl.Node, s Streak, now time.Time) (bool, string) {
	ready, why := rules.Ready(s, now)
	switch {
	case !ready:
		return false, why
	case !n.Drained():
		return false, "the node is not drained"
	case n.Reason != s.Reason || !Ours(n.Reason):
		return false, "the reason is not the one that we wrote"
	}
	return true, why
}

// Undrain gives the node back if its reason is still the one that was decided
// upon.
func Undrain(ctx context.Context, c Slurm, node, reason string) error {
	n, err := c.Node(ctx, node)
	if err != nil {
		return err
	}
	if !n.Drained() || n.Reason != reason || !Ours(reason) {
		return fmt.Errorf("undrain %s: its state or reason has changed: %s", node, n.Reason)
	}
	return c.Undrain(ctx, node)
}
