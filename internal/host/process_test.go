package host

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestParseProcessStat(t *testing.T) {
	tail := " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1234 5 18446744073709551615"
	for _, tt := range []struct {
		name, in, comm string
		ok             bool
	}{
		{"plain", "42 (python3)" + tail, "python3", true},
		{"parentheses in the name", "42 (a) R (b)" + tail, "a) R (b", true},
		{"escape in the name", "42 (a\x1b[2Jb)" + tail, "a?[2Jb", true},
		{"cut", "42 (python3) S 1", "", false},
		{"empty", "", "", false},
		{"no name", "42 python3" + tail, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p Process
			err := parseProcessStat(tt.in, &p)
			if tt.ok != (err == nil) {
				t.Fatalf("error %v, want ok %v", err, tt.ok)
			}
			if tt.ok && (p.Comm != tt.comm || p.State != 'S' || p.Start != 987654) {
				t.Errorf("got %+v, want comm %q, state S, start 987654", p, tt.comm)
			}
		})
	}
}

func TestJobOfCgroup(t *testing.T) {
	for in, want := range map[string]string{
		"5:devices:/slurm/uid_1000/job_123/step_0/task_0\n":                     "123",
		"9:name=systemd:/\n4:memory:/slurm_gpu1/uid_0/job_7/step_batch\n0::/\n": "7",
		"0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_0\n":  "4711",
		"0::/system.slice/gpu1_slurmstepd.scope/job_s8K2AJ0N4V5X01/step_0\n":    "s8K2AJ0N4V5X01",
		"0::/user.slice/user-1000.slice/session-3.scope\n":                      "",
		"0::/user.slice/user-1000.slice/job_12/x\n":                             "",
		"0::/system.slice/slurmstepd.scope/system\n":                            "",
		"5:devices:/slurm/uid_1000/job_/step_0\n":                               "",
		"5:devices:/slurm/uid_1000/job_1;reboot/step_0\n":                       "",
		"": "",
	} {
		if got := JobOfCgroup(in); got != want {
			t.Errorf("JobOfCgroup(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestProcessOfThisMachine(t *testing.T) {
	f := NewFS("/")
	self, err := f.Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if self.UID != os.Geteuid() || self.Parent != os.Getppid() || self.Start == 0 || !strings.HasPrefix(self.Comm, "host.test") {
		t.Errorf("this process is %+v", self)
	}
}

func TestZombieIsSeen(t *testing.T) {
	f := NewFS("/")
	cmd := exec.Command("/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := f.Process(cmd.Process.Pid)
	if err != nil || p.State == 'Z' {
		t.Fatalf("a running process: %+v, %v", p, err)
	}
	out := make(chan bool)
	go func() { // nobody waits for it yet, so it becomes a zombie
		defer close(out)
		for {
			if z, err := f.Process(p.PID); err != nil || z.State == 'Z' {
				return
			}
		}
	}()
	in.Close()
	<-out
	if z, err := f.Process(p.PID); err != nil || z.State != 'Z' {
		t.Errorf("state %c, %v; want a zombie", z.State, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Process(p.PID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a process that is gone: %v, want not exist", err)
	}
}
