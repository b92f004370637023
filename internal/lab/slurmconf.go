package lab

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// cpus of a node as Slurm is told, more than the machine has: the jobs of the
// lab compute nothing. memory (MiB) is not consumed either.
const (
	cpus   = 64
	memory = 1000
)

// writeConfig writes slurm.conf and gres.conf, and what the hooks need.
func (l *Lab) writeConfig() error {
	for _, d := range []string{"etc", "logs", "ctld", "munge", "jobs"} {
		if err := os.MkdirAll(filepath.Join(l.Dir, d), 0o755); err != nil {
			return err
		}
	}
	// StateSaveLocation and the munge key are nobody else's business, jobs
	// may write where they run.
	for d, mode := range map[string]os.FileMode{"ctld": 0o700, "jobs": 0o1777} {
		if err := os.Chmod(filepath.Join(l.Dir, d), os.ModeSticky&mode|mode.Perm()); err != nil {
			return err
		}
	}
	var err error
	if l.ports, err = freePorts(1 + len(l.Nodes)); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".") // slurmctld compares the short name
	if err := l.writeHooks(); err != nil {
		return err
	}
	if err := l.writeDetection(); err != nil {
		return err
	}
	if l.opts.Cgroups {
		if err := os.WriteFile(filepath.Join(l.Dir, "etc", "cgroup.conf"), []byte(l.cgroupConf()), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(l.SlurmConf(), []byte(l.slurmConf(host)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.Dir, "etc", "gres.conf"), []byte(l.gresConf()), 0o644)
}

// slurmConf is the cluster's slurm.conf, each setting on a line.
func (l *Lab) slurmConf(host string) string {
	settings := []string{
		"ClusterName=gpulab",
		fmt.Sprintf("SlurmctldHost=%s(127.0.0.1)", host),
		fmt.Sprintf("SlurmctldPort=%d", l.ports[0]),
		"CommunicationParameters=NoCtldInAddrAny,NoInAddrAny",
		"AuthType=auth/munge",
		// A requeued job waits cred_expire + 1 s before it starts elsewhere.
		"AuthInfo=socket=" + l.mungeSocket() + ",cred_expire=5",
		"SlurmUser=root",
		"StateSaveLocation=" + filepath.Join(l.Dir, "ctld"),
		"SlurmdSpoolDir=" + filepath.Join(l.Dir, "nodes", "%n", "slurmd"),
		"SlurmctldPidFile=" + filepath.Join(l.Dir, "slurmctld.pid"),
		"SlurmdPidFile=" + filepath.Join(l.Dir, "nodes", "%n", "slurmd.pid"),
		"SlurmctldLogFile=" + filepath.Join(l.Dir, "logs", "slurmctld.log"),
		"SlurmdLogFile=" + filepath.Join(l.Dir, "logs", "%n.log"),
		"ProctrackType=proctrack/" + l.proctrack(),
		"TaskPlugin=task/" + l.taskPlugin(),
		"MpiDefault=none",
		"SlurmdParameters=config_overrides",
		"SelectType=select/cons_tres",
		"SelectTypeParameters=CR_Core",
		"SchedulerParameters=nohold_on_prolog_fail,sched_interval=2,bf_interval=2",
		"GresTypes=gpu",
		"ReturnToService=2",
		"KillWait=2",
		"MinJobAge=86400", // there is no slurmdbd: slurmctld must remember the jobs
		"PrologEpilogTimeout=60",
	}
	if !l.opts.NoHooks {
		settings = append(settings,
			"Prolog="+l.wrapper("prolog.sh"),
			"Epilog="+l.wrapper("epilog.sh"),
			"PrologFlags=Alloc")
	}
	interval := l.opts.HealthCheck
	if l.opts.PluginDir != "" {
		settings = append(settings, "PluginDir="+l.opts.PluginDir)
		interval = cmp.Or(interval, 3600)
	}
	if interval > 0 {
		settings = append(settings, "HealthCheckProgram="+l.wrapper("healthcheck.sh"), fmt.Sprintf("HealthCheckInterval=%d", interval))
	}
	settings = override(settings, l.opts.SlurmConf)
	for i, n := range l.Nodes {
		// The last node has the least weight: a job that names none goes there.
		settings = append(settings, fmt.Sprintf(
			"NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=%d RealMemory=%d Gres=gpu:h100:%d Weight=%d State=UNKNOWN",
			n.Name, l.ports[1+i], cpus, memory, len(n.gres), 10*(len(l.Nodes)-i)))
	}
	settings = append(settings, "PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO")
	return strings.Join(settings, "\n") + "\n"
}

// override replaces the settings whose key is in extra, and adds the rest.
func override(settings, extra []string) []string {
	for _, e := range extra {
		key, _, _ := strings.Cut(e, "=")
		kept := settings[:0]
		for _, s := range settings {
			if k, _, _ := strings.Cut(s, "="); !strings.EqualFold(k, key) {
				kept = append(kept, s)
			}
		}
		settings = append(kept, e)
	}
	return settings
}

// freePorts finds ports of the loopback address that nobody listens on.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		c, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer c.Close() // all at the end, so that no port comes twice
		ports = append(ports, c.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
