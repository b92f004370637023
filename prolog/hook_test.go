package main

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/lab/stage"
	"gpuhooks/internal/runs"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stage.Clean()
	os.Exit(code)
}

// files lists what lies in the run's directory.
func files(s *stage.Stage, run string) string {
	entries, err := os.ReadDir(s.Path("run/runs/" + run))
	if err != nil {
		return "no directory"
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != "sums.json" {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

func expect(t *testing.T, r stage.Result, code int, says ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("exit %d, want %d; it said:\n%s", r.Code, code, r.Stderr)
	}
	for _, text := range says {
		if !strings.Contains(r.Stderr, text) {
			t.Errorf("%q is not in what it said:\n%s", text, r.Stderr)
		}
	}
	if r.Stdout != "" {
		t.Errorf("stdout %q", r.Stdout)
	}
}

func TestHealthyJob(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	r := s.Prolog(stage.Job{ID: 17, GPUs: "0,3"})
	expect(t, r, 0)
	if r.Stderr != "" {
		t.Errorf("a healthy node is not worth a line: %s", r.Stderr)
	}
	if got := files(s, "17.0"); got != "job.json" {
		t.Errorf("the run has %s", got)
	}
	list, err := runs.Dir(s.Path("run")).List()
	if err != nil || len(list) != 1 || !list[0].Live() {
		t.Fatalf("%+v, %v", list, err)
	}
	text := s.Read("run/runs/17.0/job.json")
	for _, want := range []string{s.UUIDs[0], s.UUIDs[3], `"energy_millijoules"`, `"rule":"gres.conf"`, `"driver_load"`} {
		if !strings.Contains(text, want) {
			t.Errorf("job.json lacks %s", want)
		}
	}
	if strings.Contains(text, s.UUIDs[1]) {
		t.Error("job.json has somebody else's GPU")
	}
	if s.Read("state/calls") != "" {
		t.Errorf("Slurm was asked: %s", s.Read("state/calls"))
	}
	var h driver.Heartbeat
	for range 200 {
		if h, err = driver.ReadHeartbeat(s.Path("run")); err == nil && slices.Contains(h.Runs, "17.0") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("nobody samples the run: heartbeat %+v, %v; sampler.log: %s", h, err, s.Read("run/sampler.log"))
}

func TestLostGPU(t *testing.T) {
	s := stage.New(t, "dgx-h100", "observe")
	s.Must(s.Set("gpu.3.lost=true"))
	s.Must(s.Xid(3, 79, ""))

	r := s.Prolog(stage.Job{ID: 1, GPUs: "3"})
	expect(t, r, 0, "fell off the bus", "GPU 3", s.UUIDs[3], "warning: would drain: LOST gpu=3")
	if s.Drained() != "" || s.Read("state/calls") != "" {
		t.Errorf("observe mode touched the node: %s", s.Read("state/calls"))
	}
	if got := files(s, "1.0"); got != "job.json" {
		t.Errorf("the run has %s", got)
	}

	s.Configure("enforce", false, "")
	r = s.Prolog(stage.Job{ID: 2, GPUs: "3"})
	expect(t, r, 1, "drained n1: [HC] LOST gpu=3 "+s.UUIDs[3])
	if !strings.HasPrefix(s.Drained(), "[HC] LOST gpu=3 ") {
		t.Errorf("reason %q", s.Drained())
	}
	if got := files(s, "2.0"); got != "refused" {
		t.Errorf("the run has %s", got)
	}
	if n := strings.Count(r.Stderr, "fell off the bus"); n != 1 {
		t.Errorf("the device is named %d times:\n%s", n, r.Stderr)
	}
	// Another job's GPU does not matter to this one.
	expect(t, s.Prolog(stage.Job{ID: 3, GPUs: "0"}), 0)
}

// Somebody else's reason stays, and the job does not start on the broken GPU.
func TestForeignReason(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("gpu.3.lost=true"))
	s.Write("state/node", "IDLE+DRAIN\n")
	s.Write("state/reason", "moving racks")
	expect(t, s.Prolog(stage.Job{ID: 1, GPUs: "3"}), 1, "moving racks")
	if s.Drained() != "moving racks" {
		t.Errorf("reason %q", s.Drained())
	}
}

// The brake holds what could be a mistake of ours, but not a GPU of the job's own
// that is lost.
func TestBrake(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	now := time.Now().UTC().Format("2006-01-02T15:04:05")
	for _, code := range []string{"NODRIVER", "LOST"} {
		var others strings.Builder
		for _, n := range []string{"n2", "n3", "n4"} {
			others.WriteString(n + "|drained|" + now + "|root|[HC] " + code + " gpu=1\n")
		}
		s.Write("state/others", others.String())
		if code == "NODRIVER" {
			s.Must(s.Set("driver.loaded=false"))
			expect(t, s.Prolog(stage.Job{ID: 1, GPUs: "3"}), 0, "the brake allows 3")
			if got := files(s, "1.0"); got != "job.json" || s.Drained() != "" {
				t.Errorf("the run has %s, reason %q", got, s.Drained())
			}
			s.Must(s.Set("driver.loaded=true", "gpu.3.lost=true"))
			s.Forget()
			continue
		}
		expect(t, s.Prolog(stage.Job{ID: 2, GPUs: "3"}), 1, "drained n1: [HC] LOST")
	}
}

// A Slurm that does not answer drains the node itself when the prolog fails.
func TestSlurmSilent(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("gpu.3.lost=true"))
	s.Write("state/silent", "")
	r := s.Prolog(stage.Job{ID: 1, GPUs: "3"})
	expect(t, r, 1, "not drained", "no answer")
	if r.Took > 4*time.Second {
		t.Errorf("took %s", r.Took)
	}
}

func TestNothingToDo(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("count_calls=true", "gpu.3.lost=true"))
	expect(t, s.Prolog(stage.Job{ID: 1}), 0)
	// A node without gpu in its Gres.
	expect(t, s.Run("gpu-prolog", []string{"SLURM_JOB_ID=1", "SLURM_JOB_GPUS=3", "SLURM_SCRIPT_CONTEXT=prolog_slurmd", "SLURM_CONF=" + s.Path("cpu.conf")}), 1)
	s.Write("cpu.conf", "NodeName=n1 CPUs=4\n")
	s.Must(s.ResetCalls())
	expect(t, s.Run("gpu-prolog", []string{"SLURM_JOB_ID=2", "SLURM_JOB_GPUS=3", "SLURM_SCRIPT_CONTEXT=prolog_slurmd", "SLURM_CONF=" + s.Path("cpu.conf")}), 0)
	// Switched off, by configuration and by file.
	s.Configure("enforce", true, "[prolog]\nenabled = false\n")
	expect(t, s.Prolog(stage.Job{ID: 3, GPUs: "3"}), 0)
	s.Configure("enforce", true, "")
	s.Write("off", "")
	expect(t, s.Prolog(stage.Job{ID: 3, GPUs: "3"}), 0, "switched off")
	// Not a prolog at all.
	expect(t, s.Run("gpu-prolog", nil), 0, "switched off")
	s.Must(os.Remove(s.Path("off")))
	expect(t, s.Run("gpu-prolog", nil), 0, "no SLURM_JOB_ID")
	expect(t, s.Run("gpu-prolog", []string{"SLURM_JOB_ID=x", "SLURM_JOB_GPUS=3"}), 0, "not a job id")
	expect(t, s.Run("gpu-prolog", []string{"SLURM_JOB_ID=7", "SLURM_SCRIPT_CONTEXT=prolog_slurmctld"}), 0, "not for those of slurmctld")
	calls, err := s.Calls()
	if err != nil || len(calls) != 0 {
		t.Errorf("NVML was asked: %v, %v", calls, err)
	}
}

func TestDriverGone(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("driver.loaded=false"))
	expect(t, s.Prolog(stage.Job{ID: 1, GPUs: "0"}), 1, "the nvidia kernel module is not loaded")
	if !strings.HasPrefix(s.Drained(), "[HC] NODRIVER") {
		t.Errorf("reason %q", s.Drained())
	}
}

// Whatever the configuration is like, the job is looked after.
func TestBrokenConfiguration(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("gpu.3.lost=true"))
	expect(t, s.Prolog(stage.Job{ID: 1, GPUs: "0"}), 0)
	good := s.Read("gpuhooks.toml")
	s.Write("gpuhooks.toml", good+"[drain\n")
	expect(t, s.Prolog(stage.Job{ID: 2, GPUs: "3"}), 1, "using the last good copy", "hint: gpu-prolog config check")
	s.Write("gpuhooks.toml", good+"spoon = 1\n")
	expect(t, s.Prolog(stage.Job{ID: 3, GPUs: "0"}), 0, "warning", "unknown key \"drain.spoon\"")
}

// The library never returns: the prolog answers in time, and says that it could
// not look.
func TestHangingDriver(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "[prolog]\ndeadline = \"300ms\"\nboot = \"300ms\"\n")
	s.Must(s.Set("call.nvmlInit=hang", "call.nvmlInit_v2=hang"))
	r := s.Prolog(stage.Job{ID: 1, GPUs: "0"})
	expect(t, r, 0, "gpu-probe: none", "before the deadline")
	if r.Took > 2*time.Second {
		t.Errorf("took %s", r.Took)
	}
	if got := files(s, "1.0"); got != "job.json" {
		t.Errorf("the run has %s", got)
	}
}

// State of another boot, half-written or not ours is never mixed with this run's.
func TestOldState(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Write("run/runs/5.0/job.json", `{"schema":"gpuhooks.run/1","boot`)
	s.Write("run/runs/6.0/job.json", `{"schema":"gpuhooks.run/1","boot_id":"another"}`)
	s.Write("run/runs/6.0/end", `{}`)
	s.Write("run/memory.json", `{"schema":`)
	s.Write("run/reading.json", `{"schema":`)
	s.Write("run/identity.json", `nonsense`)
	expect(t, s.Prolog(stage.Job{ID: 5, GPUs: "0"}), 0)
	expect(t, s.Prolog(stage.Job{ID: 6, GPUs: "1"}), 0)
	for _, run := range []string{"5.0", "6.0"} {
		if got := files(s, run); got != "job.json" {
			t.Errorf("%s has %s", run, got)
		}
	}
	if !strings.Contains(s.Read("run/runs/6.0/job.json"), s.UUIDs[1]) {
		t.Error("another boot's state is still there")
	}
}

// Prologs that start together share one look.
func TestTogether(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("count_calls=true"))
	var wg sync.WaitGroup
	for i, g := range []string{"0", "1", "2,3"} {
		wg.Go(func() {
			expect(t, s.Prolog(stage.Job{ID: 30 + i, GPUs: g}), 0)
		})
	}
	wg.Wait()
	for _, run := range []string{"30.0", "31.0", "32.0"} {
		if got := files(s, run); got != "job.json" {
			t.Errorf("%s has %s", run, got)
		}
	}
}

// What a job can set has no say: neither in what is checked nor in what is run.
func TestJobsCannotMeddle(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("gpu.3.lost=true"))
	expect(t, s.Prolog(stage.Job{ID: 1, GPUs: "3", More: []string{
		"SLURM_JOB_COMMENT=skip_checks", "SPANK_GPUHOOKS_OFF=1", "LD_PRELOAD=/nonexistent.so", "LD_LIBRARY_PATH=/tmp",
		"GPUHOOKS_CONFIG=/dev/null", "PATH=/tmp", "SLURM_JOB_USER=a\x1b[2Jb'; rm -rf /", "SLURM_JOB_ACCOUNT=$(reboot)",
	}}), 1, "drained n1")
}
