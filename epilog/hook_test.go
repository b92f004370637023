package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/lab/stage"
	"gpuhooks/internal/record"
	"gpuhooks/internal/spool"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stage.Clean()
	os.Exit(code)
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
	if r.Took > 2600*time.Millisecond {
		t.Errorf("took %s", r.Took)
	}
}

// recordOf reads the record of a run from the spool, or from where says.
func recordOf(t *testing.T, s *stage.Stage, run string, where ...string) record.Record {
	t.Helper()
	dir := "spool/records"
	if len(where) > 0 {
		dir = where[0]
	}
	r, err := spool.Read(s.Path(filepath.Join(dir, run+".n1.json")))
	if err != nil {
		t.Fatal(err)
	}
	if s.Read(filepath.Join(dir, run+".n1.line")) == "" {
		t.Error("no line protocol beside the record")
	}
	return r
}

func quiet(t *testing.T, r stage.Result) {
	t.Helper()
	expect(t, r, 0)
	if r.Stderr != "" {
		t.Errorf("not worth a line: %s", r.Stderr)
	}
}

func TestHealthyJob(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	job := stage.Job{ID: 17, GPUs: "0,3"}
	quiet(t, s.Prolog(job))
	sampled(t, s, "17.0")
	time.Sleep(time.Second)
	e := s.Epilog(job)
	quiet(t, e)

	r := recordOf(t, s, "17.0")
	if r.Job.ID != 17 || r.Job.Restart != 0 || r.Job.User != "ada" || r.Node != "n1" || r.Cluster != "c" || r.State.Word != record.Completed {
		t.Errorf("%+v", r.Job)
	}
	if len(r.GPUs) != 2 || r.GPUs[0].UUID != s.UUIDs[0] || r.GPUs[1].UUID != s.UUIDs[3] {
		t.Fatalf("GPUs %+v", r.GPUs)
	}
	if q := r.Quality; q.NoStart || q.NoEnd || q.SamplerMissing || q.SamplerStale || q.EventsIncomplete {
		t.Errorf("quality %+v", q)
	}
	if seconds, ok := r.Elapsed.Get(); !ok || seconds < 0.9 || seconds > 10 {
		t.Errorf("elapsed %v", r.Elapsed)
	}
	if s.Read("run/runs/17.0/done") == "" || s.Read("run/runs/17.0/end") == "" {
		t.Error("the run is not closed")
	}
	if s.Read("state/calls") != "" {
		t.Errorf("Slurm was asked: %s", s.Read("state/calls"))
	}

	// Slurm may run it twice, after a requeue with a count one higher.
	before := s.Read("spool/records/17.0.n1.json")
	quiet(t, s.Epilog(job))
	job.Restart = 1
	quiet(t, s.Epilog(job))
	if s.Read("spool/records/17.0.n1.json") != before || s.Read("spool/records/17.1.n1.json") != "" {
		t.Error("a second epilog wrote a record")
	}
}

// sampled waits until the sampler has the run.
func sampled(t *testing.T, s *stage.Stage, run string) {
	t.Helper()
	for range 300 {
		if h, err := driver.ReadHeartbeat(s.Path("run")); err == nil && strings.Contains(fmt.Sprint(h.Runs), run) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("nobody samples %s: %s", run, s.Read("run/sampler.log"))
}

// A requeued run: its epilog is told a restart count that its prolog was not.
func TestRequeue(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	quiet(t, s.Prolog(stage.Job{ID: 5, GPUs: "1"}))
	expect(t, s.Epilog(stage.Job{ID: 5, Restart: 1, GPUs: "1"}), 0, "nobody has sampled it")
	quiet(t, s.Prolog(stage.Job{ID: 5, Restart: 1, GPUs: "2"}))
	expect(t, s.Epilog(stage.Job{ID: 5, Restart: 1, GPUs: "2"}), 0)
	first, second := recordOf(t, s, "5.0"), recordOf(t, s, "5.1")
	if first.GPUs[0].UUID != s.UUIDs[1] || second.GPUs[0].UUID != s.UUIDs[2] || first.Job.Restart != 0 || second.Job.Restart != 1 {
		t.Errorf("%+v\n%+v", first.Job, second.Job)
	}
	if q := second.Quality; q.NoStart || q.NoEnd || !q.SamplerMissing {
		t.Errorf("quality %+v", q)
	}
}

// A job during which a GPU breaks: the record shows it, the node is drained, and
// the epilog still does not fail the job.
func TestBrokenDuringTheJob(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	quiet(t, s.Prolog(stage.Job{ID: 6, GPUs: "2"}))
	s.Must(s.Xid(2, 95, ""))
	s.Must(s.Set("gpu.2.recovery=1"))
	expect(t, s.Epilog(stage.Job{ID: 6, GPUs: "2"}), 0, "drained n1: [HC] ")
	if !strings.Contains(s.Drained(), "gpu=2 "+s.UUIDs[2]) {
		t.Errorf("reason %q", s.Drained())
	}
	var codes []int
	for _, e := range recordOf(t, s, "6.0").Events {
		if e.Kind == "xid" {
			codes = append(codes, e.Code)
		}
	}
	if len(codes) == 0 || codes[0] != 95 {
		t.Errorf("events %v", codes)
	}
}

// A Slurm that does not answer: the record is written all the same, and the
// epilog fails so that slurmd has the node drained.
func TestSlurmSilent(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	quiet(t, s.Prolog(stage.Job{ID: 6, GPUs: "2"}))
	s.Must(s.Set("gpu.2.lost=true"))
	s.Write("state/silent", "")
	expect(t, s.Epilog(stage.Job{ID: 6, GPUs: "2"}), 1, "no answer")
	r := recordOf(t, s, "6.0")
	if e := r.GPUs[0]; e.UUID != s.UUIDs[2] {
		t.Errorf("%+v", e)
	}
	s.Configure("observe", false, "")
	quietRun := s.Prolog(stage.Job{ID: 7, GPUs: "2"})
	expect(t, quietRun, 0, "would drain")
	expect(t, s.Epilog(stage.Job{ID: 7, GPUs: "2"}), 0, "would drain")
}

func TestWithoutProlog(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	expect(t, s.Epilog(stage.Job{ID: 8, GPUs: "0"}), 0)
	r := recordOf(t, s, "8.0")
	if !r.Quality.NoStart || r.Quality.NoEnd || len(r.GPUs) != 1 || r.GPUs[0].UUID != s.UUIDs[0] {
		t.Errorf("%+v", r)
	}
	before := s.Read("spool/records/8.0.n1.json")
	quiet(t, s.Epilog(stage.Job{ID: 8, GPUs: "0"}))
	if s.Read("spool/records/8.0.n1.json") != before {
		t.Error("a second epilog wrote again")
	}
	// A job without GPUs leaves nothing.
	quiet(t, s.Epilog(stage.Job{ID: 9}))
	if got, _ := os.ReadDir(s.Path("spool/records")); len(got) != 2 {
		t.Errorf("%d files", len(got))
	}
}

// Runs that were closed long ago go, others stay.
func TestSweep(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	old := time.Now().Add(-time.Hour)
	for _, run := range []string{"1.0", "2.0", "3.0"} {
		s.Write("run/runs/"+run+"/job.json", "{}")
		if run != "2.0" {
			s.Write("run/runs/"+run+"/done", "{}")
		}
		if run != "3.0" {
			for _, f := range []string{"/job.json", "/done", ""} {
				_ = os.Chtimes(s.Path("run/runs/"+run+f), old, old) // not all are there
			}
		}
	}
	expect(t, s.Epilog(stage.Job{ID: 9, GPUs: "0"}), 0)
	left, err := os.ReadDir(s.Path("run/runs"))
	if err != nil || fmt.Sprint(left) != "[d 2.0/ d 3.0/ d 9.0/]" {
		t.Errorf("left %v, %v", left, err)
	}
}

// The prolog refused the job: Slurm runs its epilog all the same.
func TestRefused(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Must(s.Set("gpu.3.lost=true"))
	expect(t, s.Prolog(stage.Job{ID: 10, GPUs: "3"}), 1)
	quiet(t, s.Epilog(stage.Job{ID: 10, Restart: 1, GPUs: "3"}))
	if got, _ := os.ReadDir(s.Path("spool/records")); len(got) != 0 {
		t.Errorf("a refused run has %d files of a record", len(got))
	}
}

// State that is half-written, another boot's or another version's is said and
// never used.
func TestOldState(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	for id, c := range map[int]struct{ text, says string }{
		20: {`{"schema":"gpuhooks.run/1","boot`, "half-written"},
		21: {`{"schema":"gpuhooks.run/9"}`, "another version"},
		22: {`{"schema":"gpuhooks.run/1","boot_id":"x","job":{"ID":22},"resolution":{"verdict":"resolved","gpus":[{"index":0,"uuid":"GPU-x"}]}}`, "another boot"},
	} {
		run := fmt.Sprintf("%d.0", id)
		s.Write("run/runs/"+run+"/job.json", c.text)
		expect(t, s.Epilog(stage.Job{ID: id, GPUs: "0"}), 0, c.says)
		r := recordOf(t, s, run)
		if id < 22 && (!r.Quality.NoStart || r.Quality.NoEnd) || id == 22 && !r.Quality.NodeLost {
			t.Errorf("%d: quality %+v", id, r.Quality)
		}
		if s.Read("run/runs/"+run+"/done") == "" {
			t.Errorf("%d is not closed", id)
		}
	}
}

// A spool that cannot be written.
func TestSpoolReadOnly(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	s.Write("spool", "a file where the directory should be")
	quiet(t, s.Prolog(stage.Job{ID: 30, GPUs: "0"}))
	expect(t, s.Epilog(stage.Job{ID: 30, GPUs: "0"}), 0, "the spool cannot be written")
	recordOf(t, s, "30.0", "run/unsent")

	s.Write("gpuhooks.toml", strings.Replace(s.Read("gpuhooks.toml"), s.Path("run/unsent"), s.Path("spool/x"), 1))
	quiet(t, s.Prolog(stage.Job{ID: 31, GPUs: "0"}))
	expect(t, s.Epilog(stage.Job{ID: 31, GPUs: "0"}), 0, "could not be written", "hint:")
	if s.Read("run/runs/31.0/done") != "" {
		t.Error("a run without a record is closed")
	}
}

func TestHangingDriver(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	quiet(t, s.Prolog(stage.Job{ID: 40, GPUs: "0"}))
	s.Must(s.Set("call.nvmlInit=hang", "call.nvmlInit_v2=hang"))
	expect(t, s.Epilog(stage.Job{ID: 40, GPUs: "0"}), 0, "gpu-probe: none")
	if r := recordOf(t, s, "40.0"); !r.Quality.NoEnd || r.Quality.NoStart || len(r.GPUs) != 1 {
		t.Errorf("quality %+v", r.Quality)
	}
}

// A sampler that is gone, or hangs, costs the rest of the samples and 80 ms.
func TestSamplerKilled(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	quiet(t, s.Prolog(stage.Job{ID: 50, GPUs: "0"}))
	sampled(t, s, "50.0")
	s.KillSampler()
	r := s.Epilog(stage.Job{ID: 50, GPUs: "0"})
	expect(t, r, 0)
	if q := recordOf(t, s, "50.0").Quality; !q.SamplerMissing && !q.SamplerStale {
		t.Errorf("quality %+v", q)
	}
	v := recordOf(t, s, "50.0").GPUs[0].Values["energy_joules"]
	if v.Source != gpu.SourceCounter {
		t.Errorf("energy %+v", v)
	}
}

func TestOffAndNoEpilog(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Write("off", "")
	expect(t, s.Epilog(stage.Job{ID: 60, GPUs: "0"}), 0, "switched off")
	s.Must(os.Remove(s.Path("off")))
	expect(t, s.Run("gpu-epilog", nil), 0, "no SLURM_JOB_ID")
	s.Configure("enforce", true, "[epilog]\nenabled = false\n")
	quiet(t, s.Epilog(stage.Job{ID: 60, GPUs: "0"}))
	if got, _ := os.ReadDir(s.Path("spool/records")); len(got) != 0 {
		t.Errorf("%d files", len(got))
	}
}
