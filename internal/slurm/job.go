// Package slurm knows the job that Slurm calls a hook for: who it is, from the
// environment, and whose GPUs it has (DESIGN §4).
package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
)

// Context says which kind of script an environment was made for.
type Context string

// The contexts. SLURM_SCRIPT_CONTEXT names all but the last two.
const (
	Prolog         Context = "prolog_slurmd"
	Epilog         Context = "epilog_slurmd"
	PrologCtld     Context = "prolog_slurmctld"
	EpilogCtld     Context = "epilog_slurmctld"
	InJob          Context = "job"  // a step, a batch script, TaskProlog: numbers are the job's own
	OutsideOfAJob  Context = "node" // HealthCheckProgram, boot, a person: no SLURM_JOB_ID
	UnknownContext Context = ""     // a job id, and nothing that says where
)

// Job is what slurmd tells a hook about a job. Of the environment only the
// variables are read that slurmd itself sets: SPANK_*, the comment, extra, names
// and paths are the user's and are never looked at.
type Job struct {
	ID           uint32 // SLURM_JOB_ID; 0 outside of a job. Array tasks have their own
	RestartCount int    // the epilog of a requeued run is told one more than its prolog was
	Context      Context
	SLUID        string // 25.11+: unique per run
	HetJobID     uint32 // 0 when the job is not part of a heterogeneous one

	User      string
	UID       gpu.Opt[uint32]
	GID       gpu.Opt[uint32]
	Account   string
	Partition string
	QOS       string // 26.05+
	Cluster   string

	NodeName   string // SLURMD_NODENAME
	NodeList   string // compact, as Slurm writes it
	NumNodes   gpu.Opt[int]
	CPUsOnNode string             // SLURM_JOB_CPUS_PER_NODE, compact: "64(x2),32"
	Start      gpu.Opt[time.Time] // 23.02+
	End        gpu.Opt[time.Time] // 23.02+: when the time limit is reached; in an epilog not when it ended

	// Epilog only. With PrologFlags=RunInJob Slurm always says 0 here.
	ExitCode    gpu.Opt[int] // of the batch script
	ExitSignal  gpu.Opt[int]
	DerivedExit gpu.Opt[int] // highest status of the steps, 128+n for signal n

	SlurmConf string // SLURM_CONF

	GPUs GPUVariables
}

// GPUVariables are the variables from which a job's GPUs are found, raw but for
// blanks around them.
type GPUVariables struct {
	Job     gpu.Opt[string] // SLURM_JOB_GPUS
	Step    gpu.Opt[string] // SLURM_STEP_GPUS, inside a job only
	CUDA    gpu.Opt[string] // CUDA_VISIBLE_DEVICES
	Ordinal gpu.Opt[string] // GPU_DEVICE_ORDINAL
	ROCR    gpu.Opt[string] // ROCR_VISIBLE_DEVICES
	MPS     gpu.Opt[string] // CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
}

// Bounds on what is taken from the environment.
const (
	maxName = 256
	maxList = 64 << 10
)

// FromEnv reads the job from an environment as os.Environ gives it. Without
// SLURM_JOB_ID it returns a Job with ID 0 and no error. A job id that is not a
// number, or a GPU list too long to be true, is an error: half of such a list
// would be the wrong GPUs.
func FromEnv(environ []string) (Job, error) {
	e := newEnv(environ)
	j := Job{
		SLUID:      e.text("SLURM_JOB_SLUID"),
		User:       e.text("SLURM_JOB_USER"),
		Account:    e.text("SLURM_JOB_ACCOUNT"),
		Partition:  e.text("SLURM_JOB_PARTITION"),
		QOS:        e.text("SLURM_JOB_QOS"),
		Cluster:    e.text("SLURM_CLUSTER_NAME"),
		NodeName:   e.text("SLURMD_NODENAME"),
		NodeList:   e.list("SLURM_JOB_NODELIST", "SLURM_NODELIST"),
		CPUsOnNode: e.text("SLURM_JOB_CPUS_PER_NODE"),
		SlurmConf:  e.list("SLURM_CONF"),
		Start:      e.time("SLURM_JOB_START_TIME"),
		End:        e.time("SLURM_JOB_END_TIME"),
	}
	j.Context = e.context()
	if j.Context == OutsideOfAJob {
		return j, nil
	}
	id := e.first("SLURM_JOB_ID", "SLURM_JOBID")
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil || n == 0 {
		return j, fmt.Errorf("SLURM_JOB_ID: %q is not a job id", Clean(id, 40))
	}
	j.ID = uint32(n)
	if n, ok := e.number("SLURM_JOB_RESTART_COUNT"); ok {
		j.RestartCount = int(n)
	}
	if n, ok := e.number("SLURM_HET_JOB_ID", "SLURM_PACK_JOB_ID"); ok {
		j.HetJobID = uint32(n)
	}
	if n, ok := e.number("SLURM_JOB_UID", "SLURM_UID"); ok {
		j.UID = gpu.Some(uint32(n))
	}
	if n, ok := e.number("SLURM_JOB_GID"); ok {
		j.GID = gpu.Some(uint32(n))
	}
	if n, ok := e.number("SLURM_JOB_NUM_NODES"); ok {
		j.NumNodes = gpu.Some(int(n))
	}
	if j.Context == Epilog || j.Context == EpilogCtld {
		j.readExit(e)
	}
	return j, j.readGPUs(e)
}

// readExit takes the exit status from SLURM_JOB_EXIT_CODE2 ("code:signal"). The
// older variable is a wait status and serves only where the other is missing.
func (j *Job) readExit(e env) {
	code, sig, ok := strings.Cut(e.first("SLURM_JOB_EXIT_CODE2"), ":")
	c, err1 := strconv.Atoi(code)
	s, err2 := strconv.Atoi(sig)
	if ok && err1 == nil && err2 == nil {
		j.ExitCode, j.ExitSignal = gpu.Some(c), gpu.Some(s)
	} else if w, ok := e.number("SLURM_JOB_EXIT_CODE"); ok {
		j.ExitCode, j.ExitSignal = gpu.Some(int(w>>8&0xff)), gpu.Some(int(w&0x7f))
	}
	if w, ok := e.number("SLURM_JOB_DERIVED_EC"); ok {
		j.DerivedExit = gpu.Some(derived(w))
	}
}

// derived turns the wait status of SLURM_JOB_DERIVED_EC into what a shell would
// show: the exit code, or 128 and the signal.
func derived(w uint64) int {
	if sig := w & 0x7f; sig != 0 {
		return 128 + int(sig)
	}
	return int(w >> 8 & 0xff)
}

func (j *Job) readGPUs(e env) error {
	for name, to := range map[string]*gpu.Opt[string]{
		"SLURM_JOB_GPUS":                    &j.GPUs.Job,
		"SLURM_STEP_GPUS":                   &j.GPUs.Step,
		"CUDA_VISIBLE_DEVICES":              &j.GPUs.CUDA,
		"GPU_DEVICE_ORDINAL":                &j.GPUs.Ordinal,
		"ROCR_VISIBLE_DEVICES":              &j.GPUs.ROCR,
		"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": &j.GPUs.MPS,
	} {
		v, ok := e[name]
		if !ok {
			continue
		}
		if len(v) > maxList {
			return fmt.Errorf("%s: longer than %d bytes", name, maxList)
		}
		*to = gpu.Some(Clean(v, maxList))
	}
	return nil
}
