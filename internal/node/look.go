// Package node looks at this node and remembers: the one path from the probe to
// a verdict that prolog, epilog and health check share.
//
//	look := node.Read(ctx, cfg, opt)       // shared with hooks that start at the same time
//	only := …                              // resolve the job's GPUs with look.Inventory
//	v := look.Judge(only, jobs)            // checks, policy; remembers good looks
package node

import (
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
	"gpuhooks/internal/verdict"
)

// Options says how to look.
type Options struct {
	Hook      verdict.Hook
	NodeName  string        // in Slurm; selects the lines of gres.conf
	Tier      int           // 0 or 1
	MaxAge    time.Duration // a reading up to this old may be shared; 0 reads anew
	Deadline  time.Duration // for the probe's whole answer; 0 is the configuration's for the hook
	JobCgroup bool          // we run inside a job's cgroup (PrologFlags=RunInJob)
	Now       func() time.Time
}

// Look is one look at the node. It is always usable: what could not be read is
// in Answer, in the GPUs' faults and in Problems.
type Look struct {
	Node      gpu.Node
	Kernel    driver.Kernel
	Answer    gpu.Answer
	Shared    bool // another hook's reading, up to MaxAge old
	First     bool // nobody had looked since boot or driver load
	Inventory slurm.Inventory
	Gres      slurmconf.Gres // gres.conf, empty when there is none
	GresErr   error          // why gres.conf could not be read or understood; also when it is missing
	Problems  []error        // what the log should say

	cfg    config.Config
	opt    Options
	store  Store
	memory Memory
}

// Jobs is what the caller knows of the jobs on this node. Package runs has it.
type Jobs struct {
	Live       []string // job ids of live runs, the present job's included in a prolog
	SharedGPUs []string // UUIDs on which several jobs may run (shard, MPS)
}
