package main

import (
	"context"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/drain"
	"gpuhooks/internal/node"
	"gpuhooks/internal/slurmctl"
)

// How long Slurm's word that our drain stands is taken for granted. Somebody may
// give a node back that is still broken; from 26.05 on slurmd tells whether the
// node is in service.
const (
	recheck     = time.Minute
	recheckTold = 30 * time.Minute
)

// inService is what slurmd says of the node (SLURM_NODE_IS_HEALTHY, 26.05 and
// newer): "yes", "no" (down, drained or in maintenance), or "".
func (h *hook) inService() string { return lookup(h.env.Environ, "SLURM_NODE_IS_HEALTHY") }

// durable is what the node remembers beyond this boot.
func (h *hook) durable() node.Durable { return node.Durable{Dir: h.cfg.Paths.State} }

// drains reads what the node knows of its drain.
func (h *hook) drains() node.Drains {
	own, err := h.durable().Drains()
	if err != nil {
		h.log.Warnf("%v", err)
	}
	return own
}

func (h *hook) keepDrains(own node.Drains) {
	if err := h.durable().KeepDrains(own); err != nil {
		h.log.Warnf("the drain is not remembered: %v", err)
	}
}

func (h *hook) warn(texts []string) {
	for _, t := range texts {
		h.log.Warnf("%s", t)
	}
}

// drain takes the node out of service and says whether it now is. Slurm is not
// asked again while nothing has changed.
func (h *hook) drain() bool {
	if d := h.drains().Drained; h.stands(d) {
		h.log.Infof("%s is drained by us since %s: %s", h.name, d.Time.UTC().Format(time.RFC3339), d.Reason)
		h.warn(drain.RecordFaults(h.cfg, h.verdict, false, h.look.BootID))
		return true
	}
	r := drain.OnVerdict(context.Background(), h.cfg, h.verdict, h.name, lookup(h.env.Environ, "SLURM_CONF"), h.look.BootID, h.env.Now())
	for _, text := range r.Texts {
		h.log.Errorf("%s", text)
	}
	h.braked = !r.Refuses()
	return r.Refuses()
}

// stands says that our drain need not be looked at again: Slurm has confirmed it
// a moment ago, for the same fault, and a person has no more to do now than then.
func (h *hook) stands(d *node.Drained) bool {
	if d == nil || d.Touched || !drain.Names(d.Reason, h.verdict.Code) || h.verdict.Class == check.Hardware && d.Class != check.Hardware {
		return false
	}
	age := h.env.Now().Sub(d.Confirmed)
	switch h.inService() {
	case "yes":
		return false
	case "no":
		return age >= 0 && age < recheckTold
	}
	return age >= 0 && age < recheck
}

// undrain takes back a drain of ours, where the site wants that and its rules
// are met. Slurm is asked only if they are, once a boot for a drain of ours that
// nobody remembers, and now and then whether the drain still stands.
func (h *hook) undrain() {
	if !h.cfg.Drain.Undrain {
		return
	}
	own := h.drains()
	if own.Drained == nil && own.AskedBoot == h.look.BootID {
		return
	}
	if h.inService() == "yes" {
		h.keepDrains(node.Drains{AskedBoot: h.look.BootID})
		return
	}
	rules := drain.Rules{Enabled: true, CleanRuns: h.cfg.Drain.UndrainRuns, Hold: h.cfg.Drain.UndrainHold.D()}
	if own.Drained != nil {
		ready, why := rules.Ready(h.streak(own.Drained), h.env.Now())
		if !ready && h.env.Now().Sub(own.Drained.Confirmed) < recheckTold {
			h.log.Infof("not undrained: %s", why)
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.cfg.Drain.Timeout.D())
	defer cancel()
	s := client(h.cfg, h.env)
	n, err := s.Node(ctx, h.name)
	if err != nil {
		h.log.Warnf("not undrained: %v", err)
		return
	}
	if own = h.follow(own, n); own.Drained == nil || own.Drained.Touched {
		return
	}
	may, why := drain.MayUndrain(rules, n, h.streak(own.Drained), h.env.Now())
	if !may {
		h.log.Infof("not undrained: %s", why)
		return
	}
	if err := drain.Undrain(ctx, s, h.name, n.Reason); err != nil {
		h.log.Warnf("%v", err)
		return
	}
	h.log.Infof("undrained %s: %s", h.name, why)
	h.keepDrains(node.Drains{AskedBoot: h.look.BootID})
}

// follow brings what the node knows of its drain in line with what Slurm says.
func (h *hook) follow(own node.Drains, n slurmctl.Node) node.Drains {
	own.AskedBoot = h.look.BootID
	switch {
	case !n.Drained():
		own.Drained = nil // somebody has given the node back
	case own.Drained == nil && drain.Ours(n.Reason):
		d := drain.Adopt(n, h.env.Now())
		own.Drained = &d
		h.log.Infof("%s is drained with a reason of ours that this node did not remember: %s", h.name, n.Reason)
	case own.Drained != nil && n.Reason != own.Drained.Reason:
		own.Drained.Touched, own.Drained.Confirmed = true, h.env.Now().UTC()
		h.log.Infof("not undrained: somebody has changed the reason: %s", n.Reason)
	case own.Drained != nil:
		own.Drained.Confirmed = h.env.Now().UTC()
	}
	h.keepDrains(own)
	return own
}

// streak is what the rules of undraining look at.
func (h *hook) streak(d *node.Drained) drain.Streak {
	m, err := (node.Store{Dir: h.cfg.Paths.Run}).Load(h.look.BootID)
	if err != nil {
		h.log.Warnf("the node's memory: %v", err)
	}
	return drain.Streak{
		Reason: d.Reason, Class: string(d.Class), DrainedAt: d.Time, Clean: m.Clean.Runs, Touched: d.Touched,
	}
}
