package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/host"
	"gpuhooks/internal/lab/stage"
)

// A probe that did not die when it was killed: the driver hangs. It is said at
// once, and nothing new is started.
func TestStuckProbe(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("count_calls=true"))
	self, err := host.FS("/").Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	boot, err := host.FS("/").BootID()
	if err != nil {
		t.Fatal(err)
	}
	s.Write(fmt.Sprintf("run/probes/%d", self.PID), fmt.Sprintf(`{"pid":%d,"start_ticks":%d,"boot_id":%q,"time":"2026-01-02T03:04:05Z","what":"probe"}`, self.PID, self.Start, boot))
	r := s.Prolog(stage.Job{ID: 1, GPUs: "0"})
	expect(t, r, 1, "gpu-probe: stuck", fmt.Sprintf("probe %d did not die", self.PID), "drained n1")
	if r.Took > time.Second {
		t.Errorf("took %s", r.Took)
	}
	if calls, err := s.Calls(); err != nil || len(calls) != 0 {
		t.Errorf("NVML was asked: %v, %v", calls, err)
	}
}

// In the job's own cgroup (PrologFlags=RunInJob) devices may be hidden: what
// counts them does not apply.
func TestInTheJobsCgroup(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	s.Must(s.Set("gpu.7.absent=true")) // gres.conf has eight
	expect(t, s.Prolog(stage.Job{ID: 1, GPUs: "0"}), 1, "gpu-count: fail")

	slurm := "/sys/fs/cgroup/freezer/slurm-test"
	dir := slurm + fmt.Sprintf("/uid_0/job_%d", os.Getpid())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Skipf("PrologFlags=RunInJob: no cgroup of version 1 can be made here: %v", err)
	}
	t.Cleanup(func() {
		for d := dir; d != "/sys/fs/cgroup/freezer"; d = filepath.Dir(d) {
			_ = os.Remove(d) // another test's may be beside it
		}
	})
	expect(t, s.PrologInCgroup(dir, stage.Job{ID: 2, GPUs: "0"}), 0)
	if got := files(s, "2.0"); got != "job.json" {
		t.Errorf("the run has %s", got)
	}
}

// A MIG instance is found by the UUID that Slurm gives for it, and its card is
// judged.
func TestMIG(t *testing.T) {
	s := stage.New(t, "dgx-a100-mig", "enforce")
	s.Configure("enforce", false, "")
	s.Write("gres.conf", "AutoDetect=nvml\n")
	s.Write("slurm.conf", "ProctrackType=proctrack/cgroup\nNodeName=n1 Gres=gpu:15\n")
	const instance = "MIG-b13a0856-fbc0-4e9e-affd-b6ba10c130e2"
	job := stage.Job{ID: 1, More: []string{"SLURM_JOB_GPUS=0", "CUDA_VISIBLE_DEVICES=" + instance}}
	expect(t, s.Prolog(job), 0)
	text := s.Read("run/runs/1.0/job.json")
	for _, want := range []string{instance, s.UUIDs[0], `"rule":"uuid"`, `"profile":"3g.20gb"`} {
		if !strings.Contains(text, want) {
			t.Errorf("job.json lacks %s", want)
		}
	}
	s.Must(s.Set("gpu.0.lost=true"))
	s.Forget()
	job.ID = 2
	expect(t, s.Prolog(job), 1, "fell off the bus", s.UUIDs[0])
}

// slurmd may stop to read what a prolog says.
func TestNobodyListens(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("gpu.3.lost=true"))
	r := s.Shell(stage.Job{ID: 1, GPUs: "3"}.Environ(), `"$0" --config "$1" 2>&1 | true`, "gpu-prolog")
	expect(t, r, 0)
	if !strings.HasPrefix(s.Drained(), "[HC] LOST gpu=3") || files(s, "1.0") != "refused" {
		t.Errorf("reason %q, the run has %s", s.Drained(), files(s, "1.0"))
	}
}
