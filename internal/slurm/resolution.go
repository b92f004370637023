package slurm

import "gpuhooks/internal/gpu"

// Verdict says how the question "whose GPUs?" ended.
type Verdict string

// The verdicts.
const (
	Resolved      Verdict = "resolved"       // GPUs holds the job's GPUs
	NoGPUs        Verdict = "none"           // the job has none here
	CannotResolve Verdict = "cannot-resolve" // Reason says why; says nothing about the health of a GPU
	NodeMode      Verdict = "node-mode"      // there is no job: look at the whole node
)

// Rule names the way by which GPUs were found.
type Rule string

// The rules, in the order in which they are tried.
const (
	ByUUID       Rule = "uuid"           // CUDA_VISIBLE_DEVICES names GPUs or MIG instances
	ByMinor      Rule = "minor"          // Slurm up to 20.11: the numbers of the device files
	BySlurmdG    Rule = "slurmd-G"       // a list that was given by hand
	ByRemembered Rule = "remembered"     // the list that was remembered since slurmd started
	ByGresConf   Rule = "gres.conf"      // File= and MultipleFiles=
	ByNVMLOrder  Rule = "nvml-order"     // AutoDetect=nvml
	ByMinorOrder Rule = "minor-order"    // AutoDetect=nvidia
	ByWholeNode  Rule = "every-gpu"      // the job has every GPU, so their order does not matter
	ByAnyOrder   Rule = "same-any-order" // every order that is possible gives the same GPUs
)

// Sharing says whether other jobs may use the same GPUs at the same time.
type Sharing string

// The kinds of sharing.
const (
	NotShared      Sharing = "no"
	SharedMPS      Sharing = "mps"     // CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is set
	SharedShard    Sharing = "shard"   // the node has shards; a shard job looks like a whole-GPU job
	SharingUnknown Sharing = "unknown" // slurm.conf was not at hand
)

// Resolution is the answer to "whose GPUs?".
type Resolution struct {
	Verdict  Verdict  `json:"verdict"`
	Rule     Rule     `json:"rule,omitempty"`
	Reason   string   `json:"reason"`
	Warnings []string `json:"warnings,omitempty"`
	GPUs     []GPU    `json:"gpus"`              // in Slurm's order; empty unless resolved
	Missing  []GPU    `json:"missing,omitempty"` // named by Slurm, not shown by the driver: what is known of them
	Shared   bool     `json:"shared"`            // by MPS or perhaps by shards
	Sharing  Sharing  `json:"sharing,omitempty"`
}

// MayBeShared says whether what is seen on the GPUs may be another job's, which
// is also so when it is not known.
func (r Resolution) MayBeShared() bool { return r.Sharing != NotShared }

// GPU is one GPU of a job, or one MIG instance of it.
type GPU struct {
	Index gpu.Opt[int] `json:"index"` // NVML order
	Minor gpu.Opt[int] `json:"minor"` // /dev/nvidiaN
	UUID  string       `json:"uuid"`  // of the card
	PCI   string       `json:"pci"`
	Name  string       `json:"name,omitempty"`
	MIG   *MIG         `json:"mig"` // nil for a whole GPU
}

// MIG is the instance that a job has.
type MIG struct {
	GI      int    `json:"gi"`
	CI      int    `json:"ci"`
	Profile string `json:"profile"`
	UUID    string `json:"uuid,omitempty"`
}

func gpuOf(g *InventoryGPU, m *InventoryMIG) GPU {
	out := GPU{Index: g.Index, Minor: g.Minor, UUID: g.UUID, PCI: g.PCI, Name: g.Name}
	if m != nil {
		out.MIG = &MIG{GI: m.GI, CI: m.CI, Profile: m.Profile, UUID: m.UUID}
	}
	return out
}

// same says whether a and b are one device.
func (a GPU) same(b GPU) bool {
	if a.Index != b.Index || a.Minor != b.Minor || a.UUID != b.UUID || (a.MIG == nil) != (b.MIG == nil) {
		return false
	}
	return a.MIG == nil || *a.MIG == *b.MIG
}
