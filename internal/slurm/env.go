package slurm

import (
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
)

// env holds the variables that slurmd sets and we use.
type env map[string]string

// ours are the variables that are looked at at all. What is not here cannot
// have an influence, whoever sets it.
var ours = []string{
	"SLURMD_NODENAME", "SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_SCRIPT_CONTEXT",
	"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_SLUID", "SLURM_HET_JOB_ID", "SLURM_PACK_JOB_ID",
	"SLURM_JOB_RESTART_COUNT", "SLURM_JOB_UID", "SLURM_UID", "SLURM_JOB_GID", "SLURM_JOB_USER",
	"SLURM_JOB_ACCOUNT", "SLURM_JOB_PARTITION", "SLURM_JOB_QOS",
	"SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_JOB_CPUS_PER_NODE",
	"SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME",
	"SLURM_JOB_EXIT_CODE", "SLURM_JOB_EXIT_CODE2", "SLURM_JOB_DERIVED_EC",
	"SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
	"ROCR_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
	"SLURM_NODEID", "SLURM_PROCID", "SLURM_STEP_ID",
}

// newEnv keeps the first value of each variable, as getenv does.
func newEnv(environ []string) env {
	wanted := make(map[string]bool, len(ours))
	for _, name := range ours {
		wanted[name] = true
	}
	e := env{}
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if _, seen := e[name]; ok && !seen && wanted[name] {
			e[name] = value
		}
	}
	return e
}

func (e env) first(names ...string) string {
	for _, n := range names {
		if v := e[n]; v != "" {
			return v
		}
	}
	return ""
}

func (e env) text(names ...string) string { return Clean(e.first(names...), maxName) }
func (e env) list(names ...string) string { return Clean(e.first(names...), 4096) }

func (e env) number(names ...string) (uint64, bool) {
	n, err := strconv.ParseUint(e.first(names...), 10, 32)
	return n, err == nil
}

// time reads seconds since 1970. Slurm writes 0 or 4294967294 for "not known".
func (e env) time(name string) gpu.Opt[time.Time] {
	n, err := strconv.ParseInt(e[name], 10, 64)
	if err != nil || n <= 0 || n >= 1<<32-2 {
		return gpu.Opt[time.Time]{}
	}
	return gpu.Some(time.Unix(n, 0).UTC())
}

func (e env) context() Context {
	switch c := Context(e["SLURM_SCRIPT_CONTEXT"]); {
	case e.first("SLURM_JOB_ID", "SLURM_JOBID") == "":
		return OutsideOfAJob
	case c == Prolog, c == Epilog, c == PrologCtld, c == EpilogCtld:
		return c
	case c != "": // prolog_task, epilog_task and what may come: they run as the job
		return InJob
	}
	for _, n := range []string{"SLURM_NODEID", "SLURM_PROCID", "SLURM_STEP_ID", "SLURM_STEP_GPUS"} {
		if _, ok := e[n]; ok {
			return InJob
		}
	}
	return UnknownContext
}

// Clean makes text from outside harmless for logs and terminals: it trims s,
// replaces control characters and broken UTF-8 by "?", and cuts it to n bytes.
func Clean(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufffd' {
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}
