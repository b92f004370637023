package slurmconf

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

func adviseHooks(c Conf, f Facts) []Advice {
	var out []Advice
	for _, h := range []struct{ key, program string }{{"Prolog", "gpu-prolog"}, {"Epilog", "gpu-epilog"}} {
		set := c.All(h.key)
		if len(set) == 0 {
			out = append(out, Advice{Severity: SevereWarning, Key: h.key, What: h.program + " is not called",
				Cause: h.key + "= is not set in slurm.conf",
				Cure:  fmt.Sprintf("%s=<a script that runs %s>, see scripts/", h.key, h.program)})
			continue
		}
		if len(set) > 1 && f.before(24, 5, 0) {
			out = append(out, Advice{Severity: SevereWarning, Key: h.key, Where: c.where(h.key), What: fmt.Sprintf("only the last of %d %s= lines counts", len(set), h.key),
				Cause: "several lines of one hook are run from Slurm 24.05 on",
				Cure:  "use one line with a pattern: " + h.key + "=/etc/slurm/" + strings.ToLower(h.key) + ".d/*"})
		}
		if calls, looked := f.calls(set); looked && !calls {
			out = append(out, Advice{Severity: SevereWarning, Key: h.key, Where: c.where(h.key), What: h.program + " is not called",
				Cause: "no script of " + h.key + "= names a program of gpuhooks",
				Cure:  "call " + h.program + " from it, or add a script: see scripts/"})
		}
	}
	return out
}

// calls says whether one of the scripts names gpuhooks. looked is false when no
// script could be seen, which advisePrograms reports.
func (f Facts) calls(set []Setting) (calls, looked bool) {
	for _, s := range set {
		for _, file := range f.Programs[s.Value].Files {
			looked = true
			calls = calls || file.Hooks
		}
	}
	return calls, looked
}

func advisePrograms(c Conf, f Facts) []Advice {
	var out []Advice
	for _, key := range []string{"Prolog", "Epilog", "HealthCheckProgram"} {
		for _, s := range c.All(key) {
			p, looked := f.Programs[s.Value]
			if !looked {
				continue
			}
			a := Advice{Severity: SevereError, Key: key, Where: fmt.Sprintf("%s:%d", s.File, s.Line)}
			if len(p.Files) == 0 {
				a.What = s.Value + " names no file on this node"
				a.Cause = "a pattern without a match, or a missing file, fails the hook: every job's, and each failed prolog drains a node"
				a.Cure = "install the script on every node before slurm.conf names it"
				out = append(out, a)
			}
			for _, file := range p.Files {
				if !file.Runnable() {
					a.What = fmt.Sprintf("%s has mode %04o", file.Path, file.Mode.Perm())
					a.Cause = "slurmd demands read and execute permission, also of a binary; the hook fails with status 127"
					a.Cure = "chmod 0755 " + file.Path
					out = append(out, a)
				}
			}
			if len(p.Files) > 1 {
				out = append(out, Advice{Severity: SevereInfo, Key: key, Where: a.Where, What: fmt.Sprintf("%d scripts match %s", len(p.Files), s.Value),
					Cause: "Slurm runs them in reverse alphabetical order, and the first that fails ends the row",
					Cure:  "name the script of gpuhooks so that it runs where you want it: zz-gpuhooks is first"})
			}
			if !filepath.IsAbs(s.Value) && key != "HealthCheckProgram" && f.before(23, 11, 0) {
				a.What = s.Value + " is not an absolute path"
				a.Cause = "paths relative to slurm.conf work from Slurm 23.11 on"
				a.Cure = "write the whole path"
				out = append(out, a)
			}
		}
	}
	return out
}

// prologFlags are the flags with what they imply.
func prologFlags(c Conf, f Facts) []string {
	flags := c.list("PrologFlags")
	implied := []struct{ flag, other string }{{"runinjob", "contain"}, {"x11", "contain"}, {"contain", "alloc"}}
	if f.Version.AtLeast(26, 5, 0) {
		implied = append(implied, struct{ flag, other string }{"deferbatch", "alloc"})
	}
	for _, i := range implied {
		if slices.Contains(flags, i.flag) {
			flags = append(flags, i.other)
		}
	}
	return flags
}

func advisePrologFlags(c Conf, f Facts) []Advice {
	if len(c.All("Prolog")) == 0 {
		return nil
	}
	flags := prologFlags(c, f)
	var out []Advice
	if !slices.Contains(flags, "alloc") {
		out = append(out, Advice{Severity: SevereError, Key: "PrologFlags", Where: c.where("PrologFlags"), What: "the prolog runs only when the first step reaches a node",
			Cause: "without Alloc a job of several nodes starts before the other nodes are checked, and an epilog can come where no prolog ran",
			Cure:  "PrologFlags=Alloc (or Contain, which implies it)"})
	}
	if slices.Contains(flags, "nohold") {
		out = append(out, Advice{Severity: SevereWarning, Key: "PrologFlags", Where: c.where("PrologFlags"), What: "salloc does not wait for the prolog",
			Cause: "NoHold: work starts on GPUs that are still being checked", Cure: "remove NoHold"})
	}
	if slices.Contains(flags, "serial") {
		out = append(out, Advice{Severity: SevereInfo, Key: "PrologFlags", Where: c.where("PrologFlags"), What: "prologs and epilogs of one node wait for one another",
			Cause: "Serial; gpuhooks needs no such order and shares one look among prologs that start together", Cure: "remove Serial unless another script needs it"})
	}
	return out
}

func adviseRunInJob(c Conf, f Facts) []Advice {
	flags := prologFlags(c, f)
	if !slices.Contains(flags, "runinjob") {
		return nil
	}
	at := c.where("PrologFlags")
	if f.Version.Known() && !f.Version.AtLeast(24, 5, 0) {
		return []Advice{{Severity: SevereError, Key: "PrologFlags", Where: at, What: "RunInJob is not known to this Slurm", Cause: "it came with 24.05", Cure: "remove RunInJob"}}
	}
	out := []Advice{{Severity: SevereWarning, Key: "PrologFlags", Where: at, What: "the hooks run inside the job's cgroup",
		Cause: "RunInJob: the job's device filter and memory limit hold for them (only the job's GPUs are judged, counts are skipped), and the epilog is always told exit status 0",
		Cure:  "leave RunInJob out, or start the sampler by systemd (sampler.start = \"systemd\") and take exit codes from sacct"}}
	if f.before(25, 11, 0) {
		out = append(out, Advice{Severity: SevereWarning, Key: "PrologFlags", Where: at, What: "jobs of several nodes with GPUs may crash slurmstepd",
			Cause: "RunInJob with GRES on several nodes, corrected in 25.11", Cure: "upgrade Slurm or remove RunInJob"})
	}
	return out
}

func adviseRequeue(c Conf, f Facts) []Advice {
	if len(c.All("Prolog")) == 0 {
		return nil
	}
	var out []Advice
	if _, ok := c.Option("SchedulerParameters", "nohold_on_prolog_fail"); !ok {
		out = append(out, Advice{Severity: SevereWarning, Key: "SchedulerParameters", Where: c.where("SchedulerParameters"), What: "a job whose prolog fails is held",
			Cause: "a batch job is requeued with priority 0 (\"launch failed requeued held\") and waits for a person",
			Cure:  "SchedulerParameters=nohold_on_prolog_fail: Slurm runs it on another node"})
	}
	force := slices.Contains(prologFlags(c, f), "forcerequeueonfail")
	switch {
	case force && f.Version.Known() && !f.Version.AtLeast(23, 2, 0):
		out = append(out, Advice{Severity: SevereError, Key: "PrologFlags", Where: c.where("PrologFlags"), What: "ForceRequeueOnFail is not known to this Slurm", Cause: "it came with 23.02", Cure: "remove ForceRequeueOnFail"})
	case !force && f.since(23, 2, 0):
		sev := SevereInfo
		if c.value("JobRequeue", "1") == "0" {
			sev = SevereWarning
		}
		out = append(out, Advice{Severity: sev, Key: "PrologFlags", Where: c.where("PrologFlags"), What: "a batch job that may not be requeued is cancelled when its prolog fails",
			Cause: "--no-requeue or JobRequeue=0", Cure: "PrologFlags=…,ForceRequeueOnFail (23.02 and later)"})
	case !force && c.value("JobRequeue", "1") == "0":
		out = append(out, Advice{Severity: SevereWarning, Key: "JobRequeue", Where: c.where("JobRequeue"), What: "jobs are cancelled when their prolog fails",
			Cause: "JobRequeue=0, and this Slurm has no ForceRequeueOnFail", Cure: "JobRequeue=1"})
	}
	return out
}
