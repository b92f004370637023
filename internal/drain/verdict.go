package drain

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/node"
	"gpuhooks/internal/slurmctl"
	"gpuhooks/internal/verdict"
)

// Client runs Slurm's commands as configured. slurmConf is the file that slurmd
// works with; "" is the configured one.
func Client(c config.Config, slurmConf string) slurmctl.Client {
	return slurmctl.Client{
		Scontrol: c.Slurm.Scontrol, Sinfo: c.Slurm.Sinfo, Squeue: c.Slurm.Squeue, Sacct: c.Slurm.Sacct,
		Conf: cmp.Or(slurmConf, c.Slurm.Conf), Timeout: c.Drain.Timeout.D(),
	}
}

// OnVerdict drains the node that a verdict condemns, within the configured time
// for all of Slurm's answers, and has the node remember that it was us, and why.
// The caller has seen that the verdict's action is to drain.
func OnVerdict(ctx context.Context, c config.Config, v verdict.Verdict, name, slurmConf, bootID string, now time.Time) Result {
	ctx, cancel := context.WithTimeout(ctx, c.Drain.Timeout.D())
	defer cancel()
	r := Act(ctx, Client(c, slurmConf), Request{
		Node: name, Code: v.Code, Reason: Prefix + v.Reason, OwnLost: v.OwnLost,
		Brake: Brake{Min: c.Drain.BrakeMin, Fraction: c.Drain.BrakeFraction, Window: c.Drain.BrakeWindow.D()},
		Delay: c.Drain.Delay.D(), Settle: c.Drain.Delay.D(), Now: now,
	})
	if err := remember(node.Durable{Dir: c.Paths.State}, r, v.Code, v.Class, now); err != nil {
		r.Texts = append(r.Texts, fmt.Sprintf("the drain is not remembered: %v", err))
	}
	r.Texts = append(r.Texts, RecordFaults(c, v, r.Outcome == Drained, bootID)...)
	return r
}

// RecordFaults writes the failures of a verdict into the history of the cards.
// The texts say which of them return again and again, or why nothing was written.
func RecordFaults(c config.Config, v verdict.Verdict, drained bool, bootID string) []string {
	m, err := node.Store{Dir: c.Paths.Run}.Load(bootID)
	var texts []string
	if err != nil {
		texts = append(texts, fmt.Sprintf("the node's memory: %v", err))
	}
	more, err := node.Durable{Dir: c.Paths.State}.RecordFaults(m, v, drained)
	if texts = append(texts, more...); err != nil {
		texts = append(texts, err.Error())
	}
	return texts
}
