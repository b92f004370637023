// Package stage plays the hooks on one simulated node without a Slurm: the real
// programs, the real gpu-probe, the simulated library, and two scripts that
// stand in for scontrol and sinfo. It is for the hooks' own tests.
package stage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gpuhooks/internal/sim"
)

// Stage is one simulated node with its configuration.
type Stage struct {
	*sim.Node
	Devices []string // /dev/nvidiaN in NVML's order
	UUIDs   []string // the same
	t       testing.TB
	dir     string
	bin     string
}

// programs builds the programs once for all tests of a process.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gpuhooks-stage-")
	if err != nil {
		return "", err
	}
	for name, cgo := range map[string]string{"prolog": "0", "epilog": "0", "healthcheck": "0", "probe": "1"} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "gpu-"+name), "gpuhooks/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "CGO_CFLAGS=-O1 -Wno-deprecated-declarations", "CGO_LDFLAGS=-Wl,-z,lazy")
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("build gpu-%s: %w: %s", name, err, out)
		}
	}
	return dir, nil
})

// Clean removes the programs; a TestMain calls it at the end.
func Clean() {
	if dir, _ := programs(); dir != "" {
		_ = os.RemoveAll(dir) // a test's directory in /tmp
	}
}

// New makes a node of the profile in enforce mode, with Slurm's answers quick
// and the sampler off unless more says otherwise: lines of gpuhooks.toml that
// come last.
func New(t testing.TB, profile, mode string) *Stage {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{t: t, dir: t.TempDir(), bin: bin}
	if s.Node, err = sim.NewNode(filepath.Join(s.dir, "sim"), profile); err != nil {
		t.Fatal(err)
	}
	s.readScenario()
	t.Cleanup(s.KillSampler)
	s.Write("state/node", "IDLE\n")
	s.Write("slurm.conf", fmt.Sprintf("ClusterName=c\nProctrackType=proctrack/cgroup\nNodeName=n1 Gres=gpu:%d\nNodeName=c1\n", len(s.Devices)))
	var gres strings.Builder
	for _, d := range s.Devices {
		fmt.Fprintf(&gres, "NodeName=n1 Name=gpu File=%s\n", d)
	}
	s.Write("gres.conf", gres.String())
	s.Write("scontrol", fakeScontrol)
	s.Write("sinfo", fakeSinfo)
	s.Configure(mode, true, "")
	return s
}

// Configure writes gpuhooks.toml; more is appended.
func (s *Stage) Configure(mode string, sampler bool, more string) {
	s.Write("gpuhooks.toml", fmt.Sprintf(`mode = %q
[paths]
root = %q
run = %q
spool = %q
state = %q
fallback = %q
probe = %q
nvml = %q
baseline = %q
[slurm]
conf = %q
scontrol = %q
sinfo = %q
nodename = "n1"
[sampler]
enabled = %v
tick = "200ms"
[drain]
delay = "0s"
%s
`, mode, s.Root(), s.Path("run"), s.Path("spool"), s.Path("var"), s.Path("run/unsent"), s.Probe(), s.Library(),
		s.Path("baseline.toml"), s.Path("slurm.conf"), s.Path("scontrol"), s.Path("sinfo"), sampler, more))
}

// Path is a path below the stage's directory.
func (s *Stage) Path(name string) string { return filepath.Join(s.dir, name) }

// Write writes a file below the stage's directory.
func (s *Stage) Write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.Path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(name), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// Read returns a file below the stage's directory; "" when there is none.
func (s *Stage) Read(name string) string {
	b, err := os.ReadFile(s.Path(name))
	if err != nil {
		return ""
	}
	return string(b)
}

// Forget drops the reading that hooks share for 5 s, as if that time had passed.
func (s *Stage) Forget() {
	if err := os.Remove(s.Path("run/reading.json")); err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
}

// Must ends the test on an error of the simulator.
func (s *Stage) Must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Drained is the reason with which the node was drained; "" when it was not.
func (s *Stage) Drained() string { return strings.TrimSpace(s.Read("state/reason")) }

// Job is what slurmd tells a hook about a job.
type Job struct {
	ID, Restart int
	GPUs        string // SLURM_JOB_GPUS; "" for a job without GPUs
	More        []string
}

// Environ is the environment of the job's prolog.
func (j Job) Environ() []string { return j.env("prolog_slurmd") }

func (j Job) env(context string) []string {
	env := []string{
		"SLURMD_NODENAME=n1", "SLURM_CLUSTER_NAME=c", "SLURM_JOB_UID=1000", "SLURM_JOB_USER=ada", "SLURM_JOB_PARTITION=gpu",
		fmt.Sprintf("SLURM_JOB_ID=%d", j.ID), fmt.Sprintf("SLURM_JOB_RESTART_COUNT=%d", j.Restart), "SLURM_SCRIPT_CONTEXT=" + context,
	}
	if j.GPUs != "" {
		env = append(env, "SLURM_JOB_GPUS="+j.GPUs, "CUDA_VISIBLE_DEVICES="+j.GPUs)
	}
	if context == "epilog_slurmd" {
		env = append(env, "SLURM_JOB_EXIT_CODE2=0:0")
	}
	return append(env, j.More...)
}

// Result is how a program ended.
type Result struct {
	Code   int
	Stdout string
	Stderr string
	Took   time.Duration
}

// Prolog runs gpu-prolog for a job as slurmd does.
func (s *Stage) Prolog(j Job) Result {
	return s.Run("gpu-prolog", j.env("prolog_slurmd"))
}

// Epilog runs gpu-epilog for a job as slurmd does.
func (s *Stage) Epilog(j Job) Result {
	return s.Run("gpu-epilog", j.env("epilog_slurmd"))
}

// PrologInCgroup does so inside a cgroup, as with PrologFlags=RunInJob.
func (s *Stage) PrologInCgroup(dir string, j Job) Result {
	const enter = `echo $$ > "$0/cgroup.procs" && exec "$@"`
	return s.run(j.env("prolog_slurmd"), "/bin/sh", "-c", enter, dir, s.program("gpu-prolog"), "--config", s.Path("gpuhooks.toml"))
}

// Shell runs a line of shell in which $0 is a program and $1 the configuration.
func (s *Stage) Shell(env []string, line, program string) Result {
	return s.run(env, "/bin/sh", "-c", line, s.program(program), s.Path("gpuhooks.toml"))
}

// Probe is the gpu-probe of the configuration.
func (s *Stage) Probe() string { return s.program("gpu-probe") }

func (s *Stage) program(name string) string { return filepath.Join(s.bin, name) }

// Run runs a program with exactly that environment.
func (s *Stage) Run(program string, env []string, args ...string) Result {
	return s.run(env, s.program(program), append([]string{"--config", s.Path("gpuhooks.toml")}, args...)...)
}

// run runs a command. Its output goes through pipes that are read to their end,
// as slurmd does: whoever keeps one open hangs.
func (s *Stage) run(env []string, program string, args ...string) Result {
	cmd := exec.Command(program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	err := cmd.Run()
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(), Took: time.Since(began)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.Code = exit.ExitCode()
	case err != nil:
		s.t.Errorf("%s: %v", program, err)
		r.Code = -1
	}
	if cmd.Process != nil {
		// slurmd ends the process group of a script that has ended.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return r
}

// KillSampler kills the samplers that the prologs have started, also those that
// are still about to find out that another one runs, and waits for their end.
func (s *Stage) KillSampler() {
	for range 100 {
		pids := s.samplers()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have just gone
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// samplers are the living samplers of this stage: only their command line, which
// is empty once they are dead, names its directory.
func (s *Stage) samplers() (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is a constant
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(b), "\x00sample\x00") || !strings.Contains(string(b), s.dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// readScenario finds the cards in NVML's order.
func (s *Stage) readScenario() {
	text, err := os.ReadFile(s.Scenario())
	s.Must(err)
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, "="); ok {
			values[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	for i := 0; values[fmt.Sprintf("gpu.%d.uuid", i)] != ""; i++ {
		s.UUIDs = append(s.UUIDs, values[fmt.Sprintf("gpu.%d.uuid", i)])
		s.Devices = append(s.Devices, filepath.Join(s.Root(), "dev", "nvidia"+values[fmt.Sprintf("gpu.%d.minor", i)]))
	}
}

// fakeScontrol keeps one node's state in files beside itself. With a file
// state/silent it does not answer.
const fakeScontrol = `#!/bin/sh
cd "${0%/*}/state" || exit 1
echo "scontrol $*" >> calls
[ -e silent ] && exec sleep 60
case "$*" in
*"show node"*)
	reason=
	[ -e reason ] && reason=" Reason=$(cat reason) [root@2026-11-30T12:00:00]"
	echo "NodeName=n1 Arch=x86_64 State=$(cat node) Version=22.05.8 Gres=gpu:8$reason" ;;
*State=DRAIN*)
	for a; do case "$a" in Reason=*) printf '%s' "${a#Reason=}" > reason ;; esac; done
	echo IDLE+DRAIN > node ;;
*State=UNDRAIN*)
	rm -f reason; echo IDLE > node ;;
esac
`

// fakeSinfo lists the node, and whatever lies in state/others.
const fakeSinfo = `#!/bin/sh
cd "${0%/*}/state" || exit 1
echo "sinfo $*" >> calls
[ -e silent ] && exec sleep 60
if [ -e reason ]; then echo "n1|drained|$(date -u +%Y-%m-%dT%H:%M:%S)|root|$(cat reason)"; else echo "n1|idle|Unknown|Unknown|none"; fi
[ -e others ] && cat others
exit 0
`
