// Package node looks at this node and remembers: the one path from the probe to
// a verdict that prolog, epilog and health check share.
//
//	look := node.Read(ctx, cfg, opt)   // shared with hooks that start at the same time
//	only := …                          // find the job's GPUs with look.Inventory
//	v := look.Judge(only, jobs)        // checks, policy; remembers good looks
package node

import (
	"context"
	"fmt"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
	"gpuhooks/internal/verdict"
)

// Options says how to look.
type Options struct {
	Hook      verdict.Hook
	NodeName  string          // in Slurm; selects the lines of gres.conf and slurm.conf
	SlurmConf string          // slurm.conf, where slurmd tells it (SLURM_CONF); "" is the configuration's
	Tier      int             // 0 or 1
	MaxAge    time.Duration   // a reading up to this old may be shared; 0 reads anew
	Deadline  time.Duration   // for the probe's whole answer; 0 is the configuration's for the hook
	JobCgroup bool            // we run inside a job's cgroup (PrologFlags=RunInJob)
	KernelSeq gpu.Opt[uint64] // the kernel log is wanted from behind this record on, also where others have judged it
	Now       func() time.Time

	proc   host.FS // where /proc of the processes lies; "" is "/"
	parent int     // the process above this one; 0 asks the kernel
}

// Look is one look at the node. It is always usable: what could not be read is
// in Answer, in the faults and in Problems.
type Look struct {
	Reading   driver.Reading // whole node
	BootID    string         // "" when it could not be read
	Shared    bool           // another hook's reading, up to MaxAge old
	First     bool           // nobody had looked since boot or driver load
	Inventory slurm.Inventory
	Conf      slurmconf.Conf // slurm.conf, empty when it could not be read
	ConfErr   error
	Gres      slurmconf.Gres // gres.conf, empty when there is none
	GresErr   error          // also when it is missing
	Memory    Memory         // as it was before this look
	Problems  []error        // what the log should say

	cfg   config.Config
	opt   Options
	store Store

	written <-chan error // once the reading lies there for other hooks; nil when it need not

	detected *detected // nil until somebody asks
	again    bool      // the kernel log was read again from where others have judged it
}

// Jobs is what the caller knows of the jobs on this node. Package runs has it.
type Jobs struct {
	OnGPU      map[string][]string // the live runs' jobs on each GPU, by UUID; in an epilog with its own
	Live       []string            // ids of the live runs' jobs, in a prolog with its own
	SharedGPUs []string            // UUIDs on which several jobs may run (shard, MPS)
}

// Read asks the probe, or shares what another hook was told a moment ago, and
// reads what Slurm is configured to have. It never fails and never takes longer
// than its deadline and half a second.
func Read(ctx context.Context, cfg config.Config, opt Options) *Look {
	probe := driver.New(cfg.Paths)
	return read(ctx, cfg, opt, probe.Read)
}

func read(ctx context.Context, cfg config.Config, opt Options, ask prober) *Look {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	asked := opt.Now()
	files := readSlurm(cfg, opt)
	l := &Look{cfg: cfg, opt: opt, store: Store{Dir: cfg.Paths.Run}}
	root := host.NewFS(cfg.Paths.Root)
	var err error
	l.BootID, err = root.BootID()
	l.problem("boot id", err)
	l.Memory, err = l.store.Load(l.BootID)
	l.problem("the node's memory", err)

	first := l.Memory.LastAnswer.IsZero()
	ctx, cancel := context.WithTimeout(ctx, deadline(cfg, opt, first))
	defer cancel()
	after := l.Memory.after()
	if seq, ok := opt.KernelSeq.Get(); ok && seq < after {
		after, l.again = seq, true
	}
	w := wanted{boot: l.BootID, tier: opt.Tier, after: after, asked: asked, maxAge: opt.MaxAge, now: opt.Now}
	if opt.Hook == verdict.HealthCheck { // it has the time
		w.host, w.dirs = true, []string{cfg.Paths.Spool, cfg.Paths.State}
	}
	l.Reading, l.Shared, l.written, err = l.store.share(ctx, w, ask)
	l.problem("sharing the reading", err)
	l.takeSlurm(ctx, files)
	if l.BootID == "" {
		l.BootID = l.Reading.Node.BootID
	}
	l.Memory.reload(l.Reading.Node.Presence.DriverLoad)
	l.Memory.resets(&l.Reading.Node)
	l.First = l.Memory.LastAnswer.IsZero()
	l.Inventory = l.inventory(root)
	return l
}

// Wait returns when what the look leaves for other hooks lies there. Who does not
// judge the look calls it before he ends.
func (l *Look) Wait() {
	if l.written != nil {
		l.problem("sharing the reading", <-l.written)
		l.written = nil
	}
}

// deadline is what the hook may take; the first look after boot or driver load
// may take longer.
func deadline(cfg config.Config, opt Options, first bool) time.Duration {
	if opt.Deadline > 0 {
		return opt.Deadline
	}
	h := cfg.HealthCheck
	switch opt.Hook {
	case verdict.Prolog:
		h = cfg.Prolog
	case verdict.Epilog:
		h = cfg.Epilog
	}
	if first {
		return h.Boot.D()
	}
	return h.Deadline.D()
}

// inventory is what finding a job's GPUs needs. A card that the kernel has and
// NVML does not show is in it without an index, so that its job can still be
// told that this very GPU is lost.
func (l *Look) inventory(root host.FS) slurm.Inventory {
	n := &l.Reading.Node
	var caps host.MIGMinors
	if l.Reading.Answer == gpu.AnswerWhole && hasInstances(n) {
		// The driver has just answered, so its table under /proc does too.
		var err error
		caps, err = root.MIGMinors()
		l.problem("mig-minors", err)
	}
	inv := slurm.InventoryOf(n, l.opt.NodeName, l.slurmVersion(), caps)
	for _, p := range n.Presence.Proc {
		if p.UUID != "" && n.Find(p.UUID) == nil {
			inv.GPUs = append(inv.GPUs, slurm.InventoryGPU{Minor: p.Minor, Name: p.Model, UUID: p.UUID, PCI: p.Address})
		}
	}
	return inv
}

func hasInstances(n *gpu.Node) bool {
	for _, g := range n.GPUs {
		if len(g.Instances) > 0 {
			return true
		}
	}
	return false
}

func (l *Look) problem(what string, err error) {
	if err != nil {
		l.Problems = append(l.Problems, fmt.Errorf("%s: %w", what, err))
	}
}
