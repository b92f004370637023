package driver

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

const deadline = 300 * time.Millisecond

// fake is this test binary as a probe that behaves in the given way.
func fake(t *testing.T, how string) Probe {
	t.Helper()
	return Probe{Path: self(t), Root: t.TempDir(), NVML: how, Run: filepath.Join(t.TempDir(), "run")}
}

// self is this test binary. One that somebody else built is copied, since root
// starts no probe that others could have written.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if trusted(exe) == nil {
		return exe
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(own, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return own
}

func read(t *testing.T, p Probe, d time.Duration) Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	began := time.Now()
	r := p.Read(ctx, Request{Tier: 1})
	if took := time.Since(began); took > d+500*time.Millisecond {
		t.Errorf("decided after %s, deadline %s", took, d)
	}
	return r
}

func TestRead(t *testing.T) {
	r := read(t, fake(t, "whole"), 10*time.Second)
	if r.Answer != gpu.AnswerWhole || r.Why != "" || r.Version != "1" || r.Calls != 42 || r.Node.BootID != "boot" {
		t.Fatalf("%+v", r)
	}
	if r.Kernel == nil || r.Kernel.LastSeq != 7 || r.Node.Presence.DriverLoad != "1" {
		t.Errorf("tier 0: %+v", r)
	}
	if len(r.Node.GPUs) != 2 || r.Node.GPUs[0].UUID != "GPU-0" || !r.Node.GPUs[0].Complete || !r.Node.GPUs[1].Complete {
		t.Errorf("cards: %+v", r.Node.GPUs)
	}
}

// Whatever a probe does, the caller decides in time and knows what it got.
func TestBadProbes(t *testing.T) {
	for _, c := range []struct {
		how    string
		answer gpu.Answer
		cards  int
		why    string
	}{
		{"never", gpu.AnswerNone, 0, "deadline"},
		{"presence", gpu.AnswerNone, 0, "deadline"},
		{"half of the cards", gpu.AnswerPartial, 1, "deadline"},
		{"late", gpu.AnswerNone, 0, "deadline"},
		{"crash", gpu.AnswerCrash, 1, "exit status 127"},
		{"killed", gpu.AnswerCrash, 0, "killed"},
		{"ends", gpu.AnswerCrash, 0, "before its answer was whole"},
		{"ignores TERM", gpu.AnswerNone, 0, "deadline"},
		{"garbage", gpu.AnswerGarbage, 0, "invalid character"},
		{"garbage later", gpu.AnswerGarbage, 0, "cannot unmarshal"},
		{"empty lines", gpu.AnswerGarbage, 0, "says nothing"},
		{"no hello", gpu.AnswerGarbage, 0, "hello"},
		{"half a line", gpu.AnswerNone, 0, "deadline"},
		{"half a line, then ends", gpu.AnswerCrash, 0, "before its answer was whole"},
		{"another version", gpu.AnswerGarbage, 0, `"gpuhooks.probe/2"`},
		{"long line", gpu.AnswerGarbage, 0, "a line longer than"},
		{"closes stdout", gpu.AnswerGarbage, 0, "closed its output"},
		{"child holds the pipe", gpu.AnswerCrash, 0, "before its answer was whole"},
		{"noisy", gpu.AnswerWhole, 2, ""},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			d := deadline
			if c.answer != gpu.AnswerNone && c.answer != gpu.AnswerPartial {
				d = 5 * time.Second // it is not the deadline that ends these
			}
			p := fake(t, c.how)
			r := read(t, p, d)
			if r.Answer != c.answer || len(r.Node.GPUs) != c.cards || !strings.Contains(r.Why, c.why) {
				t.Errorf("answer %s (%s) with %d cards; want %s (%s) with %d", r.Answer, r.Why, len(r.Node.GPUs), c.answer, c.why, c.cards)
			}
			if c.how == "crash" && !strings.Contains(r.Stderr, "relocation error") {
				t.Errorf("stderr %q", r.Stderr)
			}
			if c.answer != gpu.AnswerWhole && d > deadline && r.Elapsed > 2*time.Second {
				t.Errorf("a clear case took %s", r.Elapsed)
			}
			if left := processesWith(t, p.Root); left != "" {
				t.Errorf("left behind: %s", left)
			}
			if notes, _ := os.ReadDir(filepath.Join(p.Run, "probes")); len(notes) != 0 {
				t.Errorf("a probe that died is noted: %v", notes)
			}
		})
	}
}

func TestHugeAnswerIsBounded(t *testing.T) {
	r := read(t, fake(t, "huge"), 20*time.Second)
	if r.Answer != gpu.AnswerGarbage || !strings.Contains(r.Why, "longer than") {
		t.Errorf("%s: %s", r.Answer, r.Why)
	}
}

func TestNoProbe(t *testing.T) {
	p := fake(t, "whole")
	for name, path := range map[string]string{"missing": "/nonexistent/gpu-probe", "a directory": t.TempDir(), "relative": "gpu-probe"} {
		p.Path = path
		if r := read(t, p, deadline); r.Answer != gpu.AnswerNoProbe || r.Why == "" {
			t.Errorf("%s: %s (%s)", name, r.Answer, r.Why)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	exe, _ := os.Executable()
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	p.Path = filepath.Join(t.TempDir(), "probe")
	if err := os.WriteFile(p.Path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p.Path, 0o775); err != nil {
		t.Fatal(err)
	}
	if r := read(t, p, deadline); r.Answer != gpu.AnswerNoProbe || !strings.Contains(r.Why, "writable by others") {
		t.Errorf("writable by the group: %s (%s)", r.Answer, r.Why)
	}
	os.Chmod(p.Path, 0o755)
	os.Chown(p.Path, 65534, -1)
	if r := read(t, p, deadline); r.Answer != gpu.AnswerNoProbe {
		t.Errorf("somebody else's: %s (%s)", r.Answer, r.Why)
	}
}

// The probe gets nothing of ours: slurmd's pipe above all, which a stuck probe
// would hold open for ever.
func TestNothingIsInherited(t *testing.T) {
	fd, err := syscall.Open("/dev/zero", syscall.O_RDONLY, 0) // as a careless parent leaves it
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	t.Setenv("LD_PRELOAD_FAKE", "1")
	p := fake(t, "fds")
	if r := read(t, p, 10*time.Second); r.Answer != gpu.AnswerWhole {
		t.Fatalf("%+v", r)
	}
	b, err := os.ReadFile(filepath.Join(p.Root, "fds"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if strings.Contains(text, "/dev/zero") || !strings.Contains(text, "0 /dev/null") ||
		!strings.Contains(text, "\nenv \n") || !strings.Contains(text, "session true") {
		t.Errorf("the probe has:\n%s", text)
	}
	if n := strings.Count(text, "pipe:"); n != 2 {
		t.Errorf("%d pipes, want stdout and stderr:\n%s", n, text)
	}
}

// A probe that sits in state D: the caller leaves it behind, and the next one
// says so at once; when it is gone, all is as before.
func TestStuckProbe(t *testing.T) {
	dir := freezer(t)
	p := fake(t, "frozen")
	p.Root = dir
	r := read(t, p, deadline)
	if r.Answer != gpu.AnswerStuck || !strings.Contains(r.Why, "does not die") {
		t.Fatalf("%s: %s", r.Answer, r.Why)
	}
	notes, err := os.ReadDir(filepath.Join(p.Run, "probes"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("notes %v, %v", notes, err)
	}
	p.NVML = "whole"
	began := time.Now()
	if r := read(t, p, 10*time.Second); r.Answer != gpu.AnswerStuck || !strings.Contains(r.Why, notes[0].Name()) {
		t.Errorf("the next call: %s: %s", r.Answer, r.Why)
	}
	if took := time.Since(began); took > 100*time.Millisecond {
		t.Errorf("the next call took %s", took)
	}
	thaw(t, dir)
	pid, _ := strconv.Atoi(notes[0].Name())
	for range 200 {
		if _, err := machine.Process(pid); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r := read(t, p, 10*time.Second); r.Answer != gpu.AnswerWhole {
		t.Errorf("after it died: %s: %s", r.Answer, r.Why)
	}
	if notes, _ := os.ReadDir(filepath.Join(p.Run, "probes")); len(notes) != 0 {
		t.Errorf("still noted: %v", notes)
	}
}

// Notes of another boot, of a number that is somebody else's now, and what is no
// note at all do not stop a look.
func TestOldNotes(t *testing.T) {
	boot, err := machine.BootID()
	if err != nil {
		t.Fatal(err)
	}
	self, err := machine.Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	run := t.TempDir()
	for i, a := range []abandoned{
		{PID: self.PID, StartTicks: self.Start, BootID: "another"},
		{PID: self.PID, StartTicks: self.Start - 1, BootID: boot},
		{PID: 1 << 22, StartTicks: 1, BootID: boot},
	} {
		if err := note(run, a); err != nil {
			t.Fatal(err)
		}
		if a, ok := living(run); ok {
			t.Errorf("note %d counts: %v", i, a)
		}
	}
	os.WriteFile(filepath.Join(run, "probes", "17"), []byte("{"), 0o644)
	if a, ok := living(run); ok {
		t.Errorf("half a note counts: %v", a)
	}
	if err := note(run, abandoned{PID: self.PID, StartTicks: self.Start, BootID: boot, What: "probe"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := living(run); !ok {
		t.Error("a living process of this boot does not count")
	}
}

// processesWith lists running processes that have the text in their arguments.
func processesWith(t *testing.T, text string) string {
	t.Helper()
	var left []string
	for range 500 {
		left = left[:0]
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == os.Getpid() {
				continue
			}
			b, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			if strings.Contains(string(b), text) {
				left = append(left, e.Name())
			}
		}
		if len(left) == 0 {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return strings.Join(left, " ")
}
