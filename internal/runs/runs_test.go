package runs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurm"
)

const boot = "1e1f0c7e-0000-4000-8000-000000000001"

func job(uuids ...string) Job {
	j := Job{Schema: JobSchema, BootID: boot, Job: slurm.Job{ID: 4711}}
	j.Start.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, u := range uuids {
		j.Start.Devices = append(j.Start.Devices, DevicePoint{
			Identity: gpu.Identity{Index: i, UUID: u, Minor: gpu.Some(7 - i)},
			Counters: gpu.Counters{gpu.EnergyMillijoules: 100},
		})
	}
	return j
}

func TestParseName(t *testing.T) {
	for s, want := range map[string]Name{
		"4711.0": {4711, 0}, "4294967295.17": {4294967295, 17},
		"4711": {}, "4711.": {}, ".0": {}, "../4711.0": {}, "4711.0.1": {}, "04711.0": {},
		"4711.+1": {}, "4711.-1": {}, "0.0": {}, "4294967296.0": {}, ".new-123": {}, "4711.0/": {},
	} {
		got, ok := ParseName(s)
		if ok != (want != Name{}) || ok && got != want {
			t.Errorf("ParseName(%q) = %v, %v", s, got, ok)
		}
	}
}

func TestCreateAndRead(t *testing.T) {
	d, n := Dir(t.TempDir()), Name{4711, 0}
	if list, err := d.List(); err != nil || list != nil {
		t.Fatalf("an empty state directory lists %v, %v", list, err)
	}
	if err := d.Create(n, job("GPU-a", "GPU-b")); err != nil {
		t.Fatal(err)
	}
	j, err := d.ReadJob(n, boot)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := j.Start.Devices[1].Minor.Get(); !ok || m != 6 || j.Job.ID != 4711 {
		t.Errorf("read back %+v", j)
	}
	list, err := d.List()
	if err != nil || len(list) != 1 || !list[0].Live() || list[0].Name != n {
		t.Fatalf("list %+v, %v", list, err)
	}
	entries, _ := os.ReadDir(filepath.Join(string(d), "runs"))
	if len(entries) != 1 {
		t.Errorf("something was left beside the run: %v", entries)
	}
}

// A prolog that runs twice for one run keeps the first counters; a run that is
// another's, closed or refused gives way.
func TestCreateAgain(t *testing.T) {
	mark := Mark{BootID: boot, Time: time.Now().UTC()}
	for _, c := range []struct {
		name    string
		prepare func(d Dir, n Name) error
		devices []string
		kept    bool
	}{
		{"live, same devices", func(d Dir, n Name) error { return d.Create(n, job("GPU-a")) }, []string{"GPU-a"}, true},
		{"live, other devices", func(d Dir, n Name) error { return d.Create(n, job("GPU-b")) }, []string{"GPU-a"}, false},
		{"done", func(d Dir, n Name) error {
			return errors.Join(d.Create(n, job("GPU-a")), d.MarkDone(n, mark))
		}, []string{"GPU-a"}, false},
		{"refused", func(d Dir, n Name) error { return d.Refuse(n, mark) }, []string{"GPU-a"}, false},
		{"other boot", func(d Dir, n Name) error {
			j := job("GPU-a")
			j.BootID = "other"
			return d.Create(n, j)
		}, []string{"GPU-a"}, false},
		{"half-written", func(d Dir, n Name) error {
			return errors.Join(d.Create(n, job("GPU-a")),
				os.WriteFile(filepath.Join(d.Path(n), "job.json"), []byte(`{"schema":"gpuhooks.run/1","boot`), 0o644))
		}, []string{"GPU-a"}, false},
	} {
		d, n := Dir(t.TempDir()), Name{4711, 0}
		if err := c.prepare(d, n); err != nil {
			t.Fatal(c.name, err)
		}
		second := job(c.devices...)
		second.Start.Time = second.Start.Time.Add(time.Hour)
		if err := d.Create(n, second); err != nil {
			t.Fatal(c.name, err)
		}
		got, err := d.ReadJob(n, boot)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if kept := !got.Start.Time.Equal(second.Start.Time); kept != c.kept {
			t.Errorf("%s: first counters kept: %v, want %v", c.name, kept, c.kept)
		}
		if r := d.stat(n); !r.Live() {
			t.Errorf("%s: not live: %+v", c.name, r)
		}
	}
}

func TestReadersSayWhatTheyFound(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"half", `{"schema":"gpuhooks.run/1","boot_id":"` + boot, ErrBroken},
		{"empty", ``, ErrBroken},
		{"other boot", `{"schema":"gpuhooks.run/1","boot_id":"x"}`, ErrOtherBoot},
		{"newer", `{"schema":"gpuhooks.run/9","boot_id":"` + boot + `"}`, ErrVersion},
		{"not ours", `[1,2]`, ErrBroken},
		{"no schema", `{"boot_id":"` + boot + `"}`, ErrVersion},
	} {
		d, n := Dir(t.TempDir()), Name{1, 0}
		os.MkdirAll(d.Path(n), 0o755)
		os.WriteFile(filepath.Join(d.Path(n), "job.json"), []byte(c.text), 0o644)
		if _, err := d.ReadJob(n, boot); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		os.Rename(filepath.Join(d.Path(n), "job.json"), filepath.Join(d.Path(n), "sums.json"))
		if _, err := d.ReadSums(n, boot); err == nil {
			t.Errorf("%s: sums.json was read", c.name)
		}
	}
	d, n := Dir(t.TempDir()), Name{1, 0}
	if _, err := d.ReadJob(n, boot); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	// A link may lead anywhere: state is plain files.
	os.MkdirAll(d.Path(n), 0o755)
	os.Symlink("/etc/passwd", filepath.Join(d.Path(n), "job.json"))
	if _, err := d.ReadJob(n, boot); !errors.Is(err, ErrBroken) {
		t.Errorf("a link: %v", err)
	}
}

func TestSums(t *testing.T) {
	d, n := Dir(t.TempDir()), Name{1, 2}
	if err := d.WriteSums(n, Sums{}); err == nil {
		t.Error("sums were written for a run that is not there")
	}
	if err := d.Create(n, job("GPU-a")); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteSums(n, Sums{Schema: SumsSchema, BootID: boot, Final: true}); err != nil {
		t.Fatal(err)
	}
	if s, err := d.ReadSums(n, boot); err != nil || !s.Final {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestChoose(t *testing.T) {
	at := time.Unix(1, 0)
	open := func(n int) Run { return Run{Name: Name{7, n}, HasJob: true} }
	done := func(n int) Run { return Run{Name: Name{7, n}, HasJob: true, Done: at} }
	refused := func(n int) Run { return Run{Name: Name{7, n}, Refused: at} }
	other := Run{Name: Name{8, 0}, HasJob: true}
	for _, c := range []struct {
		name    string
		list    []Run
		restart int
		want    Found
		run     int
	}{
		{"plain", []Run{open(0), other}, 0, FoundOpen, 0},
		{"requeued: told one more", []Run{open(0)}, 1, FoundOpen, 0},
		{"second run after a requeue", []Run{done(0), open(1)}, 1, FoundOpen, 1},
		{"second run, requeued again", []Run{done(0), open(1)}, 2, FoundOpen, 1},
		{"a later run is not this epilog's", []Run{open(0), open(1)}, 0, FoundOpen, 0},
		{"twice", []Run{done(0)}, 0, FoundDone, 0},
		{"twice after a requeue", []Run{done(0)}, 1, FoundDone, 0},
		{"twice, an older one never closed", []Run{open(0), done(1)}, 1, FoundDone, 1},
		{"refused", []Run{refused(0)}, 1, FoundRefused, 0},
		{"ran here, then refused", []Run{done(0), refused(1)}, 2, FoundRefused, 1},
		{"refused, then ran", []Run{refused(0), open(1)}, 1, FoundOpen, 1},
		{"no prolog", []Run{other}, 0, FoundNone, 0},
		{"no prolog this time, an old run closed", []Run{done(0)}, 5, FoundNone, 0},
		{"nothing", nil, 0, FoundNone, 0},
	} {
		r, found := Choose(c.list, Name{7, c.restart})
		if found != c.want || found != FoundNone && (r.Job != 7 || r.Restart != c.run) {
			t.Errorf("%s: %s run %v, want %s %d", c.name, found, r.Name, c.want, c.run)
		}
	}
}

func TestSweep(t *testing.T) {
	now := time.Unix(1e6, 0)
	old, young := now.Add(-time.Hour), now.Add(-time.Minute)
	list := []Run{
		{Name: Name{1, 0}, HasJob: true, Done: old, Changed: old},
		{Name: Name{2, 0}, HasJob: true, Done: young, Changed: old},
		{Name: Name{3, 0}, HasJob: true, Changed: old}, // known to Slurm
		{Name: Name{4, 0}, HasJob: true, Changed: old}, // gone, epilog never came
		{Name: Name{5, 0}, Refused: old, Changed: old}, // gone
		{Name: Name{6, 0}, HasJob: true, Changed: old}, // Slurm does not answer
		{Name: Name{7, 0}, HasJob: true, Changed: young},
	}
	remove, forgotten := Sweep(list, now, func(job uint32) (known, sure bool) { return job == 3, job != 6 })
	ids := func(rs []Run) (out []uint32) {
		for _, r := range rs {
			out = append(out, r.Job)
		}
		return out
	}
	if got := ids(remove); len(got) != 3 || got[0] != 1 || got[1] != 4 || got[2] != 5 {
		t.Errorf("remove %v", got)
	}
	if got := ids(forgotten); len(got) != 1 || got[0] != 4 {
		t.Errorf("forgotten %v", got)
	}
}

func TestRemove(t *testing.T) {
	d := Dir(t.TempDir())
	for i, n := range []Name{{1, 0}, {2, 0}, {3, 1}} {
		j := job("GPU-a")
		if i == 1 {
			j.BootID = "other"
		}
		if err := d.Create(n, j); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.MarkEnd(Name{1, 0}, Mark{BootID: boot}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []Name{{1, 0}, {1, 0}, {2, 0}, {3, 1}} {
		if err := d.Remove(n); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(string(d), "runs"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
	if err := d.MarkDone(Name{9, 0}, Mark{BootID: boot}); err != nil {
		t.Error(err)
	}
	if r := d.stat(Name{9, 0}); r.Done.IsZero() || r.Live() {
		t.Errorf("%+v", r)
	}
}
