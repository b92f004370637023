package slurmconf

import (
	"fmt"
	"slices"
	"strings"
)

// adviseHealthConf: the health check gets SLURMD_NODENAME and nothing else.
func adviseHealthConf(c Conf, f Facts) []Advice {
	if p, ok := c.Get("HealthCheckProgram"); !ok || p.Value == "" || f.HealthConf != "" || f.ConfPath == DefaultConf {
		return nil
	}
	return []Advice{{Severity: SevereError, Key: "HealthCheckProgram", Where: c.where("HealthCheckProgram"), What: "the health check does not find slurm.conf, so it cannot drain",
		Cause: fmt.Sprintf("slurmd gives it only SLURMD_NODENAME, no SLURM_CONF, and slurm.conf is at %s", orNowhere(f.ConfPath)),
		Cure:  "slurm.conf = \"" + f.ConfPath + "\" in gpuhooks.toml"}}
}

func orNowhere(path string) string {
	if path == "" {
		return "no place that is known"
	}
	return path
}

func adviseCommands(_ Conf, f Facts) []Advice {
	var out []Advice
	for _, cmd := range []struct {
		name     string
		severity Severity
		what     string
	}{
		{"scontrol", SevereError, "the hooks cannot drain a node"},
		{"sinfo", SevereError, "the brake cannot count drained nodes, so only a lost GPU drains with a reason"},
		{"squeue", SevereWarning, "old runs are not cleared away, and array tasks are not found by their name"},
		{"sacct", SevereInfo, "array tasks that ended long ago are not found by their name"},
	} {
		if ok, looked := f.Commands[cmd.name]; looked && !ok {
			out = append(out, Advice{Severity: cmd.severity, Key: cmd.name, What: cmd.what,
				Cause: cmd.name + " is not at its configured path, or cannot be executed; slurmd sets no PATH",
				Cure:  "slurm." + cmd.name + " = \"/path/to/" + cmd.name + "\" in gpuhooks.toml, and Slurm's client package on the nodes"})
		}
	}
	return out
}

func adviseConfigless(c Conf, f Facts) []Advice {
	if !f.Configless {
		return nil
	}
	var out []Advice
	for _, key := range []string{"Prolog", "Epilog"} {
		for _, s := range c.All(key) {
			for _, file := range f.Programs[s.Value].Files {
				if !file.Text {
					out = append(out, Advice{Severity: SevereError, Key: key, Where: c.where(key), What: file.Path + " is a binary",
						Cause: "configless Slurm pushes hooks as text and cuts a binary at its first zero byte",
						Cure:  "name the wrapper script of scripts/, which runs the installed program"})
				}
			}
		}
	}
	return append(out, Advice{Severity: SevereInfo, Key: "SlurmctldParameters", Where: c.where("SlurmctldParameters"), What: "this node is configless",
		Cause: "slurm.conf and gres.conf are in " + f.ConfPath + ", where slurmd replaces them; tools without SLURM_CONF may not find them",
		Cure:  "slurm.conf = \"" + f.ConfPath + "\" in gpuhooks.toml; install the programs on the nodes and let Slurm push only wrappers"})
}

func adviseGres(c Conf, f Facts) []Advice {
	var out []Advice
	if f.GresError != "" {
		out = append(out, Advice{Severity: SevereError, Key: "gres.conf", What: "gres.conf has mistakes", Cause: f.GresError, Cure: "correct the lines; slurmd dies of most of them"})
	}
	has, known := NodeHasGPUs(c, f.Node)
	switch {
	case f.Node == "":
		return out
	case !known:
		return append(out, Advice{Severity: SevereWarning, Key: "NodeName", What: f.Node + " is not in slurm.conf",
			Cause: "a dynamic node, another file, or a wrong node name: whether it has GPUs cannot be told, so every job is looked at",
			Cure:  "check SLURMD_NODENAME, or slurm.nodename in gpuhooks.toml"})
	case !has:
		return append(out, Advice{Severity: SevereInfo, Key: "Gres", What: f.Node + " has no GPUs in slurm.conf",
			Cause: "its NodeName line has no Gres=gpu, so the hooks do nothing here", Cure: "Gres=gpu:<type>:<count>, if the node has GPUs"})
	}
	if !slices.Contains(c.list("GresTypes"), "gpu") {
		out = append(out, Advice{Severity: SevereError, Key: "GresTypes", Where: c.where("GresTypes"), What: "no job can get a GPU",
			Cause: "GresTypes= does not list gpu, and Slurm says nothing about it", Cure: "GresTypes=gpu"})
	}
	if !f.Gres.Detects() && len(f.Gres.Devices()) == 0 && f.GresError == "" {
		out = append(out, Advice{Severity: SevereError, Key: "gres.conf", What: "which GPU a job has cannot be told",
			Cause: "gres.conf has neither AutoDetect nor a gpu line with File= for " + f.Node, Cure: "AutoDetect=nvml, or NodeName=" + f.Node + " Name=gpu File=/dev/nvidia[0-N]"})
	}
	return out
}

// adviseAutoDetect: the order of a detected list is remembered, or follows from
// Slurm's version, or is not known.
func adviseAutoDetect(_ Conf, f Facts) []Advice {
	v := f.Version
	newer := func(what, since, cure string) []Advice {
		return []Advice{{Severity: SevereError, Key: "AutoDetect", What: what + " is not known to Slurm " + v.String(), Cause: "it came with " + since, Cure: cure}}
	}
	switch {
	case f.Gres.Auto == "nvidia" && v.Known() && !v.AtLeast(24, 11, 0):
		return newer("AutoDetect=nvidia", "24.11", "AutoDetect=nvml")
	case f.Gres.Auto == "full" && v.Known() && !v.AtLeast(26, 5, 0):
		return newer("AutoDetect=full", "26.05", "AutoDetect=nvml")
	case f.Gres.Auto == "nvidia" && f.MIG:
		return []Advice{{Severity: SevereError, Key: "AutoDetect", What: "Slurm does not see the MIG instances",
			Cause: "AutoDetect=nvidia reads /proc/driver/nvidia, which knows whole cards only", Cure: "AutoDetect=nvml, with Slurm built for it"}}
	case f.Remembered:
		return nil
	}
	order := Advice{Severity: SevereWarning, Key: "AutoDetect", What: "which GPU a job has may not be told on this node", Cure: askSlurmd(f)}
	switch {
	case f.Gres.Auto == "nvml" && f.MIG && !v.Known():
		order.Cause = "the order of GPUs and MIG instances changed in 23.02.7, and neither Slurm's version nor its device list is known"
		order.Cure = "slurm.version in gpuhooks.toml; or " + order.Cure
	case f.Gres.Auto == "nvml" && f.MIG && !v.AtLeast(23, 2, 7):
		order.Cause = "before 23.02.7 Slurm mixes MIG instances and whole GPUs in an order of its own, and its device list is not known"
		order.Cure = "upgrade; or " + order.Cure
	case f.Gres.Auto == "full":
		order.Severity = SevereInfo
		order.Cause = "AutoDetect=full counts in NVML order or by /dev/nvidiaN, whichever way Slurm was built, and its device list is not known"
		order.Cure = "AutoDetect=nvml, which says so; or " + order.Cure
	case (f.Gres.Auto == "nvml" || f.Gres.Auto == "nvidia") && !v.Known():
		order.What = "which GPU a job has may not be told once a GPU is lost"
		order.Cause = "neither Slurm's version nor the device list of slurmd's start is known here"
		order.Cure = "slurm.version in gpuhooks.toml; or " + order.Cure
	default:
		return nil
	}
	return []Advice{order}
}

// askSlurmd is how the list that slurmd detects gets known.
func askSlurmd(f Facts) string {
	if !f.SlurmdG {
		return "slurm.slurmd = \"/path/to/slurmd\" in gpuhooks.toml, and gpu-healthcheck as HealthCheckProgram: it asks slurmd -G once per start of slurmd"
	}
	return "gpu-healthcheck as HealthCheckProgram: it asks slurmd -G once per start of slurmd; its log says why that failed"
}

func adviseAccounting(c Conf, f Facts) []Advice {
	kind := strings.ToLower(c.value("AccountingStorageType", "accounting_storage/none"))
	if strings.HasSuffix(kind, "/none") || kind == "" {
		return []Advice{{Severity: SevereInfo, Key: "AccountingStorageType", Where: c.where("AccountingStorageType"), What: "Slurm forgets jobs MinJobAge seconds after their end",
			Cause: "there is no accounting: an array task's name (120_3) is then known no more", Cure: "slurmdbd, or reports by the job's own id"}}
	}
	has, _ := NodeHasGPUs(c, f.Node)
	if !has || slices.Contains(c.list("AccountingStorageTRES"), "gres/gpu") {
		return nil
	}
	return []Advice{{Severity: SevereWarning, Key: "AccountingStorageTRES", Where: c.where("AccountingStorageTRES"), What: "sacct and sreport show no GPUs",
		Cause: "AccountingStorageTRES does not list gres/gpu", Cure: "AccountingStorageTRES=gres/gpu"}}
}

// adviseCgroups: left-over processes are told from a live job's by its cgroup.
func adviseCgroups(c Conf, f Facts) []Advice {
	if has, _ := NodeHasGPUs(c, f.Node); !has || strings.EqualFold(c.value("ProctrackType", "proctrack/cgroup"), "proctrack/cgroup") {
		return nil
	}
	return []Advice{{Severity: SevereInfo, Key: "ProctrackType", Where: c.where("ProctrackType"), What: "left-over processes on GPUs are not looked for",
		Cause: "without proctrack/cgroup a process cannot be told to belong to a live job", Cure: "ProctrackType=proctrack/cgroup"}}
}
