package slurmctl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/lab/stage"
)

// site is a configuration directory; work is where a question is put.
func site(t *testing.T) (conf, work string) {
	t.Helper()
	dir := t.TempDir()
	conf, work = filepath.Join(dir, "slurm.conf"), filepath.Join(dir, "run", "slurmd-G")
	for name, text := range map[string]string{
		"slurm.conf": "SlurmdSpoolDir=/var/spool/slurmd\nInclude nodes.conf\n",
		"nodes.conf": "NodeName=n1 Gres=gpu:2\n",
		"gres.conf":  "AutoDetect=nvml\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return conf, work
}

func TestSlurmdG(t *testing.T) {
	conf, work := site(t)
	asked := filepath.Join(t.TempDir(), "asked")
	c := Client{Timeout: 5 * time.Second, Slurmd: fake(t, `
echo "$@" >`+asked+`; cat "$3" "$(dirname "$3")/gres.conf" "$(dirname "$3")/nodes.conf" >>`+asked+`; echo "$SLURM_CONF" >>`+asked+`
echo "slurmd: error: SlurmdSpoolDir 1 specified more than once, latest value used" >&2
echo "slurmd: Gres Name=gpu Type=h100 Count=1 Index=1 ID=7696487 File=/dev/nvidia1 Cores=0-3 CoreCnt=8 Links=-1,0" >&2
echo "slurmd: Gres Name=gpu Type=h100 Count=1 Index=0 ID=7696487 File=/dev/nvidia0 Cores=0-3 CoreCnt=8 Links=0,-1" >&2`)}
	devices, err := c.SlurmdG(t.Context(), conf, "n1", work)
	if err != nil || len(devices) != 2 || devices[0].Files[0] != "/dev/nvidia1" || devices[1].Files[0] != "/dev/nvidia0" {
		t.Fatalf("%+v, %v", devices, err)
	}
	b, _ := os.ReadFile(asked)
	for _, want := range []string{
		"-G -f " + work + "/slurm.conf -N n1\n", "Include " + conf + "\nSlurmdSpoolDir=" + work + "/spool\n",
		"SlurmdLogFile=/dev/null", "AutoDetect=nvml", "NodeName=n1", work + "/slurm.conf\n",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("asked with %s\nlacks %s", b, want)
		}
	}
	if _, err := os.Stat(work); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", work, err)
	}
}

func TestSlurmdGFailures(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"fatal", "echo 'slurmd: fatal: MIG mode is enabled, but no MIG devices were found.' >&2; exit 1", "MIG mode is enabled"},
		{"hangs", "sleep 20 & sleep 10", "no answer"},
		{"ignores TERM", "trap '' TERM; sleep 10", "no answer"},
		{"prints nothing", "", "no gpu in its output"},
		{"prints garbage", "echo 'Gres Name=gpu Count=x File=/dev/nvidia0'", "not a count"},
		{"prints without end", "exec yes", "no answer"},
		{"prints too much", "head -c 2000000 /dev/zero", "longer than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conf, work := site(t)
			c := Client{Slurmd: fake(t, tt.script), Timeout: 300 * time.Millisecond}
			start := time.Now()
			_, err := c.SlurmdG(t.Context(), conf, "n1", work)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
	conf, work := site(t)
	for _, path := range []string{"", "/nowhere/slurmd"} {
		if _, err := (Client{Slurmd: path}).SlurmdG(t.Context(), conf, "n1", work); !errors.Is(err, ErrNotInstalled) {
			t.Errorf("slurmd at %q: %v", path, err)
		}
	}
}

// What slurmd -G started ends with it.
func TestSlurmdGLeavesNothing(t *testing.T) {
	conf, work := site(t)
	pid := filepath.Join(t.TempDir(), "pid")
	c := Client{Slurmd: fake(t, "sleep 30 & echo $! >"+pid+"; wait"), Timeout: 300 * time.Millisecond}
	if _, err := c.SlurmdG(t.Context(), conf, "n1", work); err == nil {
		t.Fatal("no error")
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		state, err := exec.Command("ps", "-o", "stat=", "-p", strings.TrimSpace(string(b))).Output()
		if err != nil || strings.HasPrefix(string(state), "Z") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %s lives", b)
}

// One that sleeps in the kernel is left behind, by its number.
func TestSlurmdGHangsInTheKernel(t *testing.T) {
	dir := stage.Freezer(t)
	conf, work := site(t)
	c := Client{Timeout: 500 * time.Millisecond, Slurmd: fake(t, "echo 0 >"+dir+"/cgroup.procs; sleep 5")}
	start := time.Now()
	_, err := c.SlurmdG(t.Context(), conf, "n1", work)
	var stuck *StuckError
	if !errors.As(err, &stuck) || stuck.PID <= 1 || time.Since(start) > 3*time.Second {
		t.Fatalf("%v after %v", err, time.Since(start))
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stuck.PID))
	if err != nil || !strings.Contains(string(b), ") D ") {
		t.Errorf("the process: %s, %v", b, err)
	}
}
