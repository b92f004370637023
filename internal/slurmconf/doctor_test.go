package slurmconf

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// goodConf gives no error and no warning on goodFacts.
const goodConf = `
PrologFlags=Alloc,Contain,ForceRequeueOnFail
Prolog=/etc/slurm/prolog
Epilog=/etc/slurm/epilog
PrologEpilogTimeout=60
MessageTimeout=30
SchedulerParameters=nohold_on_prolog_fail
AuthInfo=cred_expire=30
HealthCheckProgram=/etc/slurm/health
HealthCheckInterval=300
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageTRES=gres/gpu
NodeName=n1 Gres=gpu:4
`

func goodFacts() Facts {
	script := func(path string) Program {
		return Program{Files: []ProgramFile{{Path: path, Mode: 0o755, Text: true, Hooks: true}}}
	}
	g, _ := ParseGres("gres.conf", []byte("AutoDetect=nvml"))
	return Facts{
		Node: "n1", Version: Version{24, 11, 5}, ConfPath: DefaultConf, HealthConf: DefaultConf, Gres: g.ForNode("n1"), Budgets: DefaultBudgets,
		Commands: map[string]bool{"scontrol": true, "sinfo": true, "squeue": true, "sacct": true},
		Programs: map[string]Program{"/etc/slurm/prolog": script("/etc/slurm/prolog"), "/etc/slurm/epilog": script("/etc/slurm/epilog"), "/etc/slurm/health": script("/etc/slurm/health")},
	}
}

// edit replaces the line of a key, drops it when the new line ends in "=", or adds it.
func edit(conf string, lines ...string) string {
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		var kept []string
		for _, l := range strings.Split(conf, "\n") {
			if k, _, _ := strings.Cut(l, "="); k != key {
				kept = append(kept, l)
			}
		}
		if value != "" {
			kept = append(kept, line)
		}
		conf = strings.Join(kept, "\n")
	}
	return conf + "\n"
}

func TestDiagnoseGood(t *testing.T) {
	c, err := ParseConf("slurm.conf", []byte(goodConf))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Diagnose(c, goodFacts()) {
		t.Errorf("%s: %s: %s", a.Severity, a.Key, a.What)
	}
}

func TestDiagnose(t *testing.T) {
	none := func(*Facts) {}
	version := func(major, minor, micro int) func(*Facts) {
		return func(f *Facts) { f.Version = Version{major, minor, micro} }
	}
	program := func(p Program) func(*Facts) {
		return func(f *Facts) {
			f.Programs = maps.Clone(f.Programs)
			f.Programs["/etc/slurm/prolog"] = p
		}
	}
	gres := func(text string, mig bool, v Version) func(*Facts) {
		return func(f *Facts) {
			g, _ := ParseGres("gres.conf", []byte(text))
			f.Gres, f.MIG, f.Version = g.ForNode("n1"), mig, v
		}
	}
	tests := []struct {
		name  string
		lines []string
		facts func(*Facts)
		want  Severity
		key   string
		what  string
	}{
		{"no prolog", []string{"Prolog="}, none, SevereWarning, "Prolog", "gpu-prolog is not called"},
		{"no epilog", []string{"Epilog="}, none, SevereWarning, "Epilog", "gpu-epilog is not called"},
		{"somebody else's prolog", nil, program(Program{Files: []ProgramFile{{Path: "/etc/slurm/prolog", Mode: 0o755, Text: true}}}), SevereWarning, "Prolog", "gpu-prolog is not called"},
		{"no match", nil, program(Program{}), SevereError, "Prolog", "names no file"},
		{"not executable", nil, program(Program{Files: []ProgramFile{{Path: "/p", Mode: 0o644, Hooks: true}}}), SevereError, "Prolog", "/p has mode 0644"},
		{"not readable", nil, program(Program{Files: []ProgramFile{{Path: "/p", Mode: 0o111, Hooks: true}}}), SevereError, "Prolog", "/p has mode 0111"},
		{"several scripts", nil, program(Program{Files: []ProgramFile{{Path: "/a", Mode: 0o755, Hooks: true}, {Path: "/b", Mode: 0o755}}}), SevereInfo, "Prolog", "2 scripts match"},
		{"two lines, old Slurm", []string{"Prolog=/etc/slurm/prolog\nProlog=/etc/slurm/prolog"}, version(23, 11, 8), SevereWarning, "Prolog", "only the last of 2"},
		{"no PrologFlags", []string{"PrologFlags="}, none, SevereError, "PrologFlags", "only when the first step"},
		{"DeferBatch before 26.05", []string{"PrologFlags=DeferBatch,ForceRequeueOnFail"}, none, SevereError, "PrologFlags", "only when the first step"},
		{"NoHold", []string{"PrologFlags=Alloc,NoHold,ForceRequeueOnFail"}, none, SevereWarning, "PrologFlags", "salloc does not wait"},
		{"Serial", []string{"PrologFlags=Alloc,Serial,ForceRequeueOnFail"}, none, SevereInfo, "PrologFlags", "wait for one another"},
		{"RunInJob", []string{"PrologFlags=RunInJob,ForceRequeueOnFail"}, none, SevereWarning, "PrologFlags", "inside the job's cgroup"},
		{"RunInJob, several nodes", []string{"PrologFlags=RunInJob,ForceRequeueOnFail"}, none, SevereWarning, "PrologFlags", "may crash slurmstepd"},
		{"RunInJob too early", []string{"PrologFlags=RunInJob"}, version(23, 11, 8), SevereError, "PrologFlags", "RunInJob is not known"},
		{"held jobs", []string{"SchedulerParameters=bf_interval=2"}, none, SevereWarning, "SchedulerParameters", "is held"},
		{"no ForceRequeueOnFail", []string{"PrologFlags=Alloc"}, none, SevereInfo, "PrologFlags", "is cancelled when its prolog fails"},
		{"no ForceRequeueOnFail, JobRequeue=0", []string{"PrologFlags=Alloc", "JobRequeue=0"}, none, SevereWarning, "PrologFlags", "is cancelled when its prolog fails"},
		{"22.05, JobRequeue=0", []string{"PrologFlags=Alloc", "JobRequeue=0"}, version(22, 5, 8), SevereWarning, "JobRequeue", "jobs are cancelled"},
		{"22.05, ForceRequeueOnFail", nil, version(22, 5, 8), SevereError, "PrologFlags", "ForceRequeueOnFail is not known"},
		{"cred_expire short", []string{"AuthInfo=cred_expire=5"}, none, SevereWarning, "AuthInfo", "credential expires after 5s"},
		{"cred_expire default", []string{"AuthInfo="}, none, SevereInfo, "AuthInfo", "after 2m1s"},
		{"no limit", []string{"PrologEpilogTimeout="}, none, SevereWarning, "PrologEpilogTimeout", "holds its job for ever"},
		{"limit too low", []string{"PrologEpilogTimeout=5"}, none, SevereError, "PrologEpilogTimeout", "kills the Prolog after 5s"},
		{"epilog limit too low", []string{"EpilogTimeout=2"}, version(25, 5, 0), SevereError, "EpilogTimeout", "kills the Epilog after 2s"},
		{"MessageTimeout 8", []string{"MessageTimeout=8"}, none, SevereWarning, "MessageTimeout", "after 6s"},
		{"no health check", []string{"HealthCheckProgram="}, none, SevereInfo, "HealthCheckProgram", "only when a job starts or ends"},
		{"interval 0", []string{"HealthCheckInterval=0"}, none, SevereError, "HealthCheckInterval", "never runs"},
		{"interval not set", []string{"HealthCheckInterval="}, none, SevereError, "HealthCheckInterval", "never runs"},
		{"interval short", []string{"HealthCheckInterval=10"}, none, SevereWarning, "HealthCheckInterval", "can overlap"},
		{"health timeout", []string{"HealthCheckTimeout=15"}, version(26, 5, 3), SevereError, "HealthCheckTimeout", "after 15s"},
		{"START_ONLY", []string{"HealthCheckNodeState=START_ONLY"}, none, SevereWarning, "HealthCheckNodeState", "running nodes are not checked"},
		{"IDLE", []string{"HealthCheckNodeState=IDLE,CYCLE"}, none, SevereInfo, "HealthCheckNodeState", "always busy"},
		{"health check without slurm.conf", nil, func(f *Facts) { f.ConfPath, f.HealthConf = "/opt/slurm/etc/slurm.conf", "" }, SevereError, "HealthCheckProgram", "does not find slurm.conf"},
		{"no scontrol", nil, func(f *Facts) { f.Commands = map[string]bool{"scontrol": false} }, SevereError, "scontrol", "cannot drain"},
		{"no sinfo", nil, func(f *Facts) { f.Commands = map[string]bool{"sinfo": false} }, SevereError, "sinfo", "cannot count"},
		{"configless", nil, func(f *Facts) { f.Configless = true }, SevereInfo, "SlurmctldParameters", "is configless"},
		{"configless binary", nil, func(f *Facts) {
			f.Configless = true
			program(Program{Files: []ProgramFile{{Path: "/usr/bin/gpu-prolog", Mode: 0o755, Hooks: true}}})(f)
		}, SevereError, "Prolog", "is a binary"},
		{"gres.conf broken", nil, func(f *Facts) { f.GresError = "gres.conf:3: x" }, SevereError, "gres.conf", "has mistakes"},
		{"node not described", nil, func(f *Facts) { f.Node = "n9" }, SevereWarning, "NodeName", "n9 is not in slurm.conf"},
		{"node without GPUs", []string{"NodeName=n1 CPUs=4"}, none, SevereInfo, "Gres", "has no GPUs"},
		{"GresTypes", []string{"GresTypes=mps"}, none, SevereError, "GresTypes", "no job can get a GPU"},
		{"no list", nil, gres("", false, Version{24, 11, 5}), SevereError, "gres.conf", "cannot be told"},
		{"nvidia too early", nil, gres("AutoDetect=nvidia", false, Version{23, 11, 8}), SevereError, "AutoDetect", "not known to Slurm 23.11.8"},
		{"nvidia with MIG", nil, gres("AutoDetect=nvidia", true, Version{24, 11, 5}), SevereError, "AutoDetect", "does not see the MIG"},
		{"MIG, old order", nil, gres("AutoDetect=nvml", true, Version{22, 5, 8}), SevereWarning, "AutoDetect", "may not be told"},
		{"MIG, version unknown", nil, gres("AutoDetect=nvml", true, Version{}), SevereWarning, "AutoDetect", "may not be told"},
		{"version and list unknown", nil, gres("AutoDetect=nvidia", false, Version{}), SevereWarning, "AutoDetect", "once a GPU is lost"},
		{"full, and no list", nil, gres("AutoDetect=full", false, Version{26, 5, 1}), SevereInfo, "AutoDetect", "may not be told"},
		{"full too early", nil, gres("AutoDetect=full", false, Version{25, 11, 0}), SevereError, "AutoDetect", "AutoDetect=full is not known"},
		{"no accounting", []string{"AccountingStorageType="}, none, SevereInfo, "AccountingStorageType", "forgets jobs"},
		{"no GPUs in accounting", []string{"AccountingStorageTRES=cpu"}, none, SevereWarning, "AccountingStorageTRES", "show no GPUs"},
		{"no cgroups", []string{"ProctrackType=proctrack/linuxproc"}, none, SevereInfo, "ProctrackType", "left-over processes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ParseConf("slurm.conf", []byte(edit(goodConf, tt.lines...)))
			if err != nil {
				t.Fatal(err)
			}
			f := goodFacts()
			tt.facts(&f)
			var said []string
			for _, a := range Diagnose(c, f) {
				if a.Severity == tt.want && a.Key == tt.key && strings.Contains(a.What, tt.what) {
					if a.Cause == "" || a.Cure == "" {
						t.Errorf("%s has no cause or no cure", a.What)
					}
					return
				}
				said = append(said, string(a.Severity)+" "+a.Key+": "+a.What)
			}
			t.Errorf("not said; said:\n%s", strings.Join(said, "\n"))
		})
	}
}

func TestDiagnoseWorstFirst(t *testing.T) {
	got := Diagnose(Conf{}, Facts{Budgets: DefaultBudgets, Commands: map[string]bool{"scontrol": false}})
	if len(got) < 3 || got[0].Severity != SevereError {
		t.Errorf("%+v", got)
	}
}

func TestReadPrograms(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"p.d/a": "#!/bin/sh\nexec /usr/sbin/gpu-prolog\n", "p.d/b": "\x7fELF...", "epilog": "#!/bin/sh\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ParseConf("slurm.conf", []byte("Prolog="+dir+"/p.d/*\nEpilog=epilog\nHealthCheckProgram=/nowhere/health\n"))
	if err != nil {
		t.Fatal(err)
	}
	c.Path = filepath.Join(dir, "slurm.conf")
	got := ReadPrograms(c)
	p := got[dir+"/p.d/*"].Files
	if len(p) != 2 || !p[0].Text || !p[0].Hooks || p[1].Text || !p[1].Runnable() {
		t.Errorf("prolog %+v", p)
	}
	if e := got["epilog"].Files; len(e) != 1 || e[0].Hooks {
		t.Errorf("epilog %+v", e)
	}
	if h, looked := got["/nowhere/health"]; !looked || len(h.Files) != 0 {
		t.Errorf("health check %+v, %v", h, looked)
	}
}

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"etc", "conf-cache"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, d, "slurm.conf"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for d, want := range map[string]bool{"etc": false, "conf-cache": true} {
		given := filepath.Join(dir, d, "slurm.conf")
		if path, configless := Locate(given); path != given || configless != want {
			t.Errorf("%s: %q, configless %v", d, path, configless)
		}
	}
}

func TestBudgetsInCures(t *testing.T) {
	c, err := ParseConf("slurm.conf", []byte(edit(goodConf, "PrologEpilogTimeout=5")))
	if err != nil {
		t.Fatal(err)
	}
	f := goodFacts()
	f.Budgets.Prolog = 30 * time.Second
	if a := Diagnose(c, f); len(a) == 0 || a[0].Cure != "PrologEpilogTimeout=60 or more" || a[0].Where != "slurm.conf:15" {
		t.Errorf("%+v", a)
	}
}

// A remembered list answers what the version would have to tell, and where there
// is none the cure is what this node lacks.
func TestDiagnoseDeviceList(t *testing.T) {
	for _, tt := range []struct {
		gres              string
		mig               bool
		version           Version
		remembered, there bool
		cure              string // "" for no advice
	}{
		{"AutoDetect=nvml", true, Version{22, 5, 8}, true, true, ""},
		{"AutoDetect=nvml", true, Version{}, true, false, ""},
		{"AutoDetect=full", false, Version{26, 5, 1}, true, true, ""},
		{"AutoDetect=nvml", false, Version{}, true, true, ""},
		{"AutoDetect=nvml", false, Version{24, 11, 5}, false, false, ""},
		{"AutoDetect=off", false, Version{}, false, false, ""},
		{"AutoDetect=nvml", true, Version{22, 5, 8}, false, true, "upgrade; or gpu-healthcheck as HealthCheckProgram"},
		{"AutoDetect=nvml", true, Version{22, 5, 8}, false, false, "upgrade; or slurm.slurmd = "},
		{"AutoDetect=nvml", false, Version{}, false, false, "slurm.version in gpuhooks.toml; or slurm.slurmd = "},
	} {
		g, err := ParseGres("gres.conf", []byte(tt.gres))
		if err != nil {
			t.Fatal(err)
		}
		f := Facts{Node: "n1", Gres: g.ForNode("n1"), MIG: tt.mig, Version: tt.version, Remembered: tt.remembered, SlurmdG: tt.there}
		a := adviseAutoDetect(Conf{}, f)
		if (len(a) > 0) != (tt.cure != "") || len(a) > 0 && !strings.HasPrefix(a[0].Cure, tt.cure) {
			t.Errorf("%+v: %+v", tt, a)
		}
	}
}
