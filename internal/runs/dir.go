package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"
)

// Dir is the state directory, /run/gpuhooks; the runs are below it in runs/.
type Dir string

// Path is a run's directory.
func (d Dir) Path(n Name) string { return filepath.Join(string(d), "runs", n.String()) }

// Mark is the content of end, done and refused.
type Mark struct {
	BootID string    `json:"boot_id"`
	Time   time.Time `json:"time"` // UTC
	Text   string    `json:"text,omitempty"`
}

// Run is one run's directory as it is now. Of a closed one only Done is set.
type Run struct {
	Name
	HasJob  bool      // job.json is there; it may be another boot's
	End     time.Time // zero where there is no such file; the file's time
	Done    time.Time
	Refused time.Time
	Changed time.Time // of the directory
}

// Live says that the job has started and has not been closed.
func (r Run) Live() bool { return r.HasJob && r.Done.IsZero() && r.Refused.IsZero() }

// Create puts a run's directory in place: built aside, then renamed in, so that
// the sampler never sees half of it. A run that is there already is left as it
// is when it is live, of this boot and about the same devices: Slurm started the
// prolog twice, and the first counters stand. Otherwise it is replaced.
func (d Dir) Create(n Name, j Job) error {
	if old, err := d.ReadJob(n, j.BootID); err == nil && d.stat(n).Live() && sameDevices(old, j) {
		return nil
	}
	return d.put(n, "job.json", j)
}

func sameDevices(a, b Job) bool {
	return slices.EqualFunc(a.Start.Devices, b.Start.Devices, func(x, y DevicePoint) bool {
		if x.UUID != y.UUID || (x.Instance == nil) != (y.Instance == nil) {
			return false
		}
		return x.Instance == nil || x.Instance.UUID == y.Instance.UUID
	})
}

// Refuse leaves a directory that says that the prolog refused the run.
func (d Dir) Refuse(n Name, m Mark) error { return d.put(n, "refused", m) }

// put builds a directory with one file aside and renames it in, over what may be
// there.
func (d Dir) put(n Name, file string, v any) error {
	base := filepath.Join(string(d), "runs")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(base, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside) // gone after the rename; else the remains
	if err := os.Chmod(aside, 0o755); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(aside, file), v); err != nil {
		return err
	}
	if err := os.Rename(aside, d.Path(n)); err == nil {
		return nil
	}
	if err := d.Remove(n); err != nil {
		return err
	}
	return os.Rename(aside, d.Path(n))
}

// Remove takes a run's directory away: first out of the readers' sight.
func (d Dir) Remove(n Name) error {
	old, err := os.MkdirTemp(filepath.Join(string(d), "runs"), ".old-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(old)
	if err := os.Rename(d.Path(n), filepath.Join(old, "run")); err != nil && !missing(err) {
		return err
	}
	return nil
}

// MarkEnd asks the sampler for the final sums of a run.
func (d Dir) MarkEnd(n Name, m Mark) error { return writeJSON(filepath.Join(d.Path(n), "end"), m) }

// MarkDone says that the run's record is spooled. Where the epilog found no
// directory it makes one, so that a second epilog sees it.
func (d Dir) MarkDone(n Name, m Mark) error {
	if err := os.MkdirAll(d.Path(n), 0o755); err != nil {
		return err
	}
	return writeJSON(filepath.Join(d.Path(n), "done"), m)
}

// ReadJob reads job.json. A file of another boot, another version or half of one
// is an error (ErrOtherBoot, ErrVersion, ErrBroken); a missing one fs.ErrNotExist.
// The Job is filled as far as it could be read.
func (d Dir) ReadJob(n Name, bootID string) (Job, error) {
	var j Job
	path := filepath.Join(d.Path(n), "job.json")
	if err := readJSON(path, &j); err != nil {
		return j, err
	}
	if err := accept(path, j.Schema, JobSchema); err != nil {
		return j, err
	}
	return j, sameBoot(path, j.BootID, bootID)
}

// ReadSums reads sums.json, with the errors of ReadJob.
func (d Dir) ReadSums(n Name, bootID string) (Sums, error) {
	var s Sums
	path := filepath.Join(d.Path(n), "sums.json")
	if err := readJSON(path, &s); err != nil {
		return s, err
	}
	if err := accept(path, s.Schema, SumsSchema); err != nil {
		return s, err
	}
	return s, sameBoot(path, s.BootID, bootID)
}

// WriteSums is the sampler's: it replaces sums.json of a run that is there.
func (d Dir) WriteSums(n Name, s Sums) error {
	return writeJSON(filepath.Join(d.Path(n), "sums.json"), s)
}

// List returns the runs that are there, by job and restart count. A state
// directory that does not exist yet has none.
func (d Dir) List() ([]Run, error) {
	entries, err := os.ReadDir(filepath.Join(string(d), "runs"))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var out []Run
	for _, e := range entries {
		if n, ok := ParseName(e.Name()); ok && e.IsDir() {
			out = append(out, d.stat(n))
		}
	}
	// Not slices.SortFunc, which would be compiled anew for this type.
	sort.Slice(out, func(i, j int) bool {
		if out[i].Job != out[j].Job {
			return out[i].Job < out[j].Job
		}
		return out[i].Restart < out[j].Restart
	})
	return out, nil
}

// stat looks which files a run has.
func (d Dir) stat(n Name) Run {
	at := func(name string) time.Time {
		st, err := os.Lstat(filepath.Join(d.Path(n), name))
		if err != nil {
			return time.Time{}
		}
		return st.ModTime()
	}
	r := Run{Name: n, Done: at("done")}
	if r.Done.IsZero() { // hundreds of closed runs may wait for their ten minutes
		r.HasJob, r.End, r.Refused, r.Changed = !at("job.json").IsZero(), at("end"), at("refused"), at(".")
	}
	return r
}
