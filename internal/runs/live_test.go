package runs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gpuhooks/internal/slurm"
)

// A run of another boot is not live; one that cannot be read is said.
func TestLiveJobs(t *testing.T) {
	d := Dir(t.TempDir())
	for i, boots := range []string{boot, "another", boot, boot} {
		j := job("GPU-a")
		j.BootID, j.Job.SLUID = boots, "s1"
		j.Resolution = slurm.Resolution{Verdict: slurm.Resolved, GPUs: []slurm.GPU{{UUID: "GPU-a"}}}
		if err := d.Create(Name{uint32(i + 1), 0}, j); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.MarkEnd(Name{1, 0}, Mark{}), d.MarkDone(Name{3, 0}, Mark{})); err != nil {
		t.Fatal(err)
	}
	live, err := d.LiveJobs(boot)
	l, ok := live[Name{1, 0}]
	if err != nil || len(live) != 2 || !ok || l.SLUID != "s1" || len(l.Resolution.GPUs) != 1 {
		t.Errorf("%+v, %v: an ending run lives until it is done", live, err)
	}
	// What stands behind the head does not matter here.
	path := filepath.Join(d.Path(Name{4, 0}), "job.json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]error{
		strings.Split(string(whole), `"start"`)[0]: nil,
		`{"schema":"gpuhooks.run/1","boot`:         ErrBroken,
		`{}`:                                       ErrBroken,
		`[]`:                                       ErrBroken,
		``:                                         ErrBroken,
		strings.Replace(string(whole), "run/1", "run/9", 1): ErrVersion,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := d.LiveJobs(boot); !errors.Is(err, want) {
			t.Errorf("%.30q: %v, want %v", text, err, want)
		}
	}
}

func TestNodeJobs(t *testing.T) {
	on := func(sharing slurm.Sharing, uuids ...string) Live {
		j := Live{Resolution: slurm.Resolution{Verdict: slurm.Resolved, Sharing: sharing}}
		for _, u := range uuids {
			j.Resolution.GPUs = append(j.Resolution.GPUs, slurm.GPU{UUID: u})
		}
		return j
	}
	j := NodeJobs(map[Name]Live{
		{12, 0}: on(slurm.NotShared, "GPU-a"), {9, 1}: on(slurm.SharedShard, "GPU-c", "GPU-b"), {10, 0}: on(slurm.SharingUnknown, "GPU-c"),
	})
	if !slices.Equal(j.Live, []string{"10", "12", "9"}) || !slices.Equal(j.SharedGPUs, []string{"GPU-b", "GPU-c"}) {
		t.Errorf("%+v", j)
	}
	slices.Sort(j.OnGPU["GPU-c"])
	if want := map[string][]string{"GPU-a": {"12"}, "GPU-b": {"9"}, "GPU-c": {"10", "9"}}; !reflect.DeepEqual(j.OnGPU, want) {
		t.Errorf("on the cards %v, want %v", j.OnGPU, want)
	}
}
