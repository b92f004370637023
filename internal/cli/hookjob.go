package cli

import (
	"gpuhooks/internal/config"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
)

// HookJob is the job that slurmd starts a prolog or epilog for. ok is false when
// the hook has nothing to do, and then leaves with 0: it is switched off, was
// not started by slurmd, or the job has no GPUs. It asks nobody and reads no
// configuration, so that a job without GPUs waits for nothing.
func HookJob(log *Log, env Env, configPath string) (job slurm.Job, ok bool) {
	if config.Off(configPath) {
		log.Infof("switched off: the file off lies beside %s", configPath)
		return job, false
	}
	job, err := slurm.FromEnv(env.Environ)
	switch {
	case err != nil:
		log.Errorf("environment: %v: the job is neither checked nor recorded", err)
	case job.ID == 0:
		log.Warnf("no SLURM_JOB_ID: not started by slurmd, nothing is done")
		log.Hintf("gpu-healthcheck looks at the node, %s --help tells the rest", env.Program)
	case job.Context == slurm.PrologCtld || job.Context == slurm.EpilogCtld:
		log.Errorf("%s is for slurmd's hooks, not for those of slurmctld: nothing is done", env.Program)
	default:
		return job, slurm.Resolve(job, slurm.Inventory{}, slurmconf.Gres{}, slurm.Options{}).Verdict != slurm.NoGPUs
	}
	return job, false
}
