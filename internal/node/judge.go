package node

import (
	"slices"
	"sync"
	"time"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
	"gpuhooks/internal/xid"
)

// Judge runs the checks on the GPUs that only names (nil: all), judges them by
// the site's policy and remembers what the next look needs. What could not be
// remembered is added to Problems.
func (l *Look) Judge(only []string, jobs Jobs) verdict.Verdict {
	v, remember := l.Verdict(only, jobs)
	remember()
	return v
}

// Verdict is Judge for a hook that has something else to do meanwhile: remember
// is to be called once, and only then Problems is whole.
func (l *Look) Verdict(only []string, jobs Jobs) (v verdict.Verdict, remember func()) {
	in := l.input(only, jobs)
	v = verdict.Run(check.All(), in, l.cfg, l.opt.Hook, time.Now)
	return v, func() { l.remember(in, jobs, v) }
}

// remember writes what the next look needs.
func (l *Look) remember(in check.Input, jobs Jobs, v verdict.Verdict) {
	l.problem("the node's memory", l.store.Update(l.BootID, func(m *Memory) {
		m.learn(in, v, l.kernelSeq())
		m.AppErrors = l.appErrors(m.AppErrors, in, jobs)
	}))
	l.rememberDevices()
	if in.Only == nil && l.opt.Hook == verdict.HealthCheck {
		l.problem("the verdict", l.store.keep(l.BootID, Digest(l.cfg), v))
	}
	l.Wait()
}

// input is all that the checks look at.
func (l *Look) input(only []string, jobs Jobs) check.Input {
	n := l.Reading.Node
	n.GPUs = slices.Clone(n.GPUs)
	in := check.Input{
		Node: n, Tier: l.opt.Tier, Only: only, Answer: l.Reading.Answer, Kernel: l.kernel(),
		Memory: check.Memory{
			Good:     map[string]gpu.Counters{},
			Last:     l.Memory.last(),
			Stuck:    l.Memory.Stuck,
			Seen:     l.Memory.seen(n.Time),
			NoAnswer: l.Memory.NoAnswer,
			Hasty:    l.hasty(),
		},
		Expected: expected(l.Gres.ForNode(l.opt.NodeName), l.detect().have.List, l.Conf, l.opt.NodeName, &n),
		Processes: check.Processes{
			Allow: l.cfg.Processes.Allow, HasCgroups: len(l.Conf.Settings) > 0 && hasCgroups(l.Conf),
			LiveJobs: jobs.Live, SharedGPUs: jobs.SharedGPUs,
		},
		Limits:  l.cfg.Limits,
		Now:     l.opt.Now(),
		Catalog: sync.OnceValue(l.catalogue),
	}
	in.Expected.JobCgroup = l.opt.JobCgroup
	in.Memory.AppErrors = l.appErrors(l.Memory.AppErrors, in, jobs)
	var err error
	if in.Baseline, err = baseline.LoadIf(l.cfg.Paths.Baseline); err != nil {
		in.Unusable = err.Error()
		l.problem("the baseline", err)
	}
	for uuid, g := range l.Memory.GPUs {
		if !g.Time.IsZero() {
			in.Memory.Good[uuid] = g.Counters
		}
	}
	return in
}

// hasty says why this hook's deadline is too short for silence to prove anything.
// Only the health check has the time for the first look, and an epilog has hardly
// any: without persistence the driver may need seconds for each.
func (l *Look) hasty() string {
	switch {
	case l.opt.Hook == verdict.Epilog:
		return "an epilog cannot wait longer"
	case l.First && l.opt.Hook == verdict.Prolog:
		return "the first look since boot or driver load may take longer"
	}
	return ""
}

// kernel is what the log says that nobody has judged yet. Records that were
// overwritten before anybody looked at this boot were nobody's to read.
func (l *Look) kernel() check.Kernel {
	k := l.Reading.Kernel
	switch {
	case k == nil:
		return check.Kernel{Why: "it did not arrive"}
	case k.Fault != nil:
		return check.Kernel{Why: k.Fault.Error()}
	}
	live := xid.Window{Boot: l.BootID, Loaded: k.Loaded, Probed: k.Probed}.Live(k.Events)
	out := check.Kernel{Read: true, Events: l.Memory.events(live, &l.Reading.Node)}
	if l.Memory.LastSeq > 0 && !l.again {
		out.Lost = k.Lost
	}
	return out
}

// kernelSeq is how far the kernel log was read; 0 when it was not.
func (l *Look) kernelSeq() uint64 {
	if k := l.Reading.Kernel; k != nil && k.Fault == nil {
		return k.LastSeq
	}
	return 0
}

func (l *Look) catalogue() xid.Catalogue {
	c, err := Catalogue(l.cfg.Paths.XID)
	l.problem("the XID catalogue", err)
	return c
}

// learn takes into the memory what a judged look has shown. The kernel log was
// read up to seq; 0 means that it was not read.
func (m *Memory) learn(in check.Input, v verdict.Verdict, seq uint64) {
	m.reload(in.Node.Presence.DriverLoad)
	m.resets(&in.Node)
	now := in.Node.Time
	switch {
	case in.Answer == gpu.AnswerWhole:
		m.NoAnswer, m.LastAnswer = time.Time{}, now
	case check.Silent(in):
		if m.NoAnswer.IsZero() {
			m.NoAnswer = now
		}
	}
	bad := map[string]bool{} // "" is the node
	for _, f := range v.Findings {
		switch {
		case f.Outcome != check.Fail:
		case f.GPU == nil:
			bad[""] = true
		default:
			bad[f.GPU.UUID] = true
		}
	}
	m.learnGPUs(in, bad, seq)
	m.learnRates(in)
	m.learnStuck(in)
	if !bad[""] {
		m.NodeSeq = max(m.NodeSeq, seq)
	}
	m.LastSeq = max(m.LastSeq, seq)
	if in.Answer == gpu.AnswerWhole && in.Tier >= 1 {
		var strays []gpu.Process
		for i := range in.Node.GPUs {
			if g := &in.Node.GPUs[i]; !slices.Contains(in.Processes.SharedGPUs, g.UUID) {
				strays = append(strays, check.Strays(g, in.Processes)...)
			}
		}
		m.sight(now, strays)
	}
	m.learnStreak(v, in.Only == nil)
}

// learnGPUs moves the good looks forward. Every card has an entry, so that what
// the log said of a card that was not judged, or not good, is not forgotten.
func (m *Memory) learnGPUs(in check.Input, bad map[string]bool, seq uint64) {
	next := map[string]Good{}
	for _, p := range in.Node.Presence.Proc {
		next[p.UUID] = m.good(p.UUID)
	}
	for i := range in.Node.GPUs {
		g := &in.Node.GPUs[i]
		good := m.good(g.UUID)
		if in.Judged(g.UUID) && g.Complete && !bad[g.UUID] && !in.Node.Time.Before(good.Time) {
			good.Time, good.Seq, good.Counters = in.Node.Time, max(good.Seq, seq), pick(g.Counters, compared)
		}
		good.Last = good.Last.see(in.Node.Time, g, seq)
		next[g.UUID] = good
	}
	delete(next, "")
	if in.Answer != gpu.AnswerWhole { // absence means nothing
		for uuid, g := range m.GPUs {
			if _, ok := next[uuid]; !ok {
				next[uuid] = g
			}
		}
	}
	if len(next) <= maxGPUs {
		m.GPUs = next
	}
}

// learnStreak counts clean looks at the whole node; any verdict against the
// node ends the streak.
func (m *Memory) learnStreak(v verdict.Verdict, whole bool) {
	clean := v.Action == verdict.None && v.Answer == gpu.AnswerWhole && v.Tier >= 1 && !v.Outcome.Worse(check.Warn)
	switch {
	case v.Hook == verdict.HealthCheck && whole && clean:
		if m.Clean.Runs == 0 {
			m.Clean.Since = v.Time
		}
		m.Clean.Runs++
	case v.Hook == verdict.HealthCheck && whole, v.Action != verdict.None:
		m.Clean = Streak{}
	}
}
