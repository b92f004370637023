package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/record"
	"gpuhooks/internal/runs"
)

func example(t *testing.T) record.Record {
	t.Helper()
	data, err := os.ReadFile("../record/testdata/busy.json")
	if err != nil {
		t.Fatal(err)
	}
	var r record.Record
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPutAndFind(t *testing.T) {
	spool, r := t.TempDir(), example(t)
	for range 2 { // a second epilog replaces the first one's
		p, err := Put(spool, "", r)
		if err != nil || p.Fallback || p.Path != filepath.Join(spool, "records", "4711.0.node01.json") {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	r.Job.Restart = 1
	r.Node = "../../etc/evil"
	if _, err := Put(spool, "", r); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(Records(spool))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "4711.0.node01.json 4711.0.node01.line 4711.1..._.._etc_evil.json 4711.1..._.._etc_evil.line" {
		t.Errorf("files: %s", got)
	}
	for _, dir := range []string{spool, Records(spool)} {
		found, bad := Find(dir, 4711)
		if len(found) != 2 || len(bad) != 0 || found[0].GPUs[0].Values["energy_joules"].Value.Or(0) != 355200 {
			t.Errorf("%s: %d records, %v", dir, len(found), bad)
		}
	}
	if found, bad := Find(spool, 471); len(found)+len(bad) != 0 {
		t.Errorf("job 471: %v %v", found, bad)
	}
	if found, bad := Find(filepath.Join(spool, "none"), 4711); len(found)+len(bad) != 0 {
		t.Errorf("no directory: %v %v", found, bad)
	}
}

func TestFindLeavesWhatIsNotARecord(t *testing.T) {
	dir := t.TempDir()
	good, _ := json.Marshal(example(t))
	for name, data := range map[string]string{
		"4711.0.half.json":     string(good[:len(good)/2]),
		"4711.0.empty.json":    "",
		"4711.0.foreign.json":  `{"hello": 1}`,
		"4711.0.newer.json":    strings.Replace(string(good), "gpuhooks.job/1", "gpuhooks.job/2", 1),
		"4711.0.large.json":    strings.Repeat(" ", MaxRecord+2),
		"4711.0.good.json":     string(good),
		"4711.0.json":          "no node in the name",
		"x.0.node.json":        "no number",
		".4711.0.n.json-1.tmp": "left by a crash",
		"4712.0.node01.json":   "another job's",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "4711.0.pipe.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "4711.0.link.json")); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		found, bad := Find(dir, 4711)
		if len(found) != 1 || len(bad) != 7 {
			t.Errorf("%d records, problems %v", len(found), bad)
		}
		for _, p := range bad {
			if strings.Contains(p.Path, "newer") && !errors.Is(p.Err, ErrVersion) {
				t.Errorf("%s: %v", p.Path, p.Err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("Find blocks")
	}
}

// fails makes spools that cannot be written, each with its error.
func fails(t *testing.T) map[string]func(t *testing.T) (string, error) {
	return map[string]func(t *testing.T) (string, error){
		"a file is in the way": func(t *testing.T) (string, error) {
			f := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(f, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			return f, syscall.ENOTDIR
		},
		"no parent can be made": func(*testing.T) (string, error) { return "/proc/gpuhooks", fs.ErrNotExist },
		"full":                  func(t *testing.T) (string, error) { return mount(t, "size=8k"), syscall.ENOSPC },
		"read-only":             func(t *testing.T) (string, error) { return mount(t, "ro"), syscall.EROFS },
	}
}

// mount is a small tmpfs, where this machine lets us have one.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	var flags uintptr
	if options == "ro" {
		flags, options = syscall.MS_RDONLY, ""
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("needs root that may mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestFallback(t *testing.T) {
	for name, make := range fails(t) {
		t.Run(name, func(t *testing.T) {
			spool, want := make(t)
			r, fallback := example(t), filepath.Join(t.TempDir(), "unsent")
			p, err := Put(spool, fallback, r)
			if err != nil || !p.Fallback || !errors.Is(p.Cause, want) {
				t.Fatalf("%+v, %v; want cause %v", p, err, want)
			}
			if found, _ := Find(fallback, r.Job.ID); len(found) != 1 {
				t.Errorf("not in the fallback directory")
			}
			if _, err := Put(spool, spool, r); !errors.Is(err, want) {
				t.Errorf("both fail: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(Records(spool), ".*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestLargeRecordLosesItsSeries(t *testing.T) {
	r := example(t)
	var long []runs.Sample
	for i := range 400_000 {
		long = append(long, runs.Sample{T: float64(i), V: 0.123456})
	}
	r.GPUs[0].Series = map[gpu.Metric][]runs.Sample{gpu.SMActive: long}
	p, err := Put(t.TempDir(), "", r)
	if err != nil || p.Bytes > MaxRecord {
		t.Fatalf("%+v, %v", p, err)
	}
	back, err := Read(p.Path)
	if err != nil || back.GPUs[0].Series != nil || !back.GPUs[0].Values["energy_joules"].Value.IsSet() {
		t.Errorf("%v", err)
	}
}

// Readers see all of a record or none of it while it is written.
func TestReadersNeverSeeHalf(t *testing.T) {
	spool, r := t.TempDir(), example(t)
	if _, err := Put(spool, "", r); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, bad := Find(spool, r.Job.ID); len(bad) != 0 {
				t.Error(bad)
				return
			}
		}
	})
	for i := range 30 {
		r.Version = fmt.Sprint(i)
		if _, err := Put(spool, "", r); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

func TestParseName(t *testing.T) {
	for in, want := range map[string]Name{
		"1.0.node01.json":          {1, 0, "node01"},
		"4294967295.3.a.b.c.json":  {4294967295, 3, "a.b.c"},
		"1.0..json":                {},
		"1.node.json":              {},
		"-1.0.n.json":              {},
		"1.0.n.line":               {},
		"99999999999.0.node1.json": {},
	} {
		if got, ok := ParseName(in); got != want || ok != (want != Name{}) {
			t.Errorf("%s: %+v %v", in, got, ok)
		}
	}
}
