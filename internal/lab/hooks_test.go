//go:build e2e

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Hooks that come late, twice or alone, and what they do when their own ground
// gives way. Slurm's own runs cannot be made to do most of it on demand, so the
// wrappers are started as slurmd starts them.

func TestEpilogWithoutProlog(t *testing.T) {
	const job = 900001
	n := shared.Node("n1")
	if status := hook(t, n, "epilog.sh", job, 0); status != 0 {
		t.Errorf("status %d", status)
	}
	r := recordOf(t, job)
	if !r.Quality.NoStart || len(r.GPUs) != 1 {
		t.Errorf("%d GPUs, quality %+v", len(r.GPUs), r.Quality)
	}
	if _, known := r.GPUs[0].Get("energy_joules"); known {
		t.Error("energy without a start counter is known")
	}
}

func TestSecondEpilogChangesNothing(t *testing.T) {
	id := submit(t, "sleep 1", "--gres=gpu:1", "-w", "n1")
	wait(t, id, "COMPLETED")
	before := recordOf(t, id)
	time.Sleep(1100 * time.Millisecond) // a second record would bear another time
	if status := hook(t, shared.Node("n1"), "epilog.sh", id, 0); status != 0 {
		t.Errorf("status %d", status)
	}
	if after := recordOf(t, id); !after.Time.Equal(before.Time) {
		t.Errorf("the record of %s was written again at %s", before.Time, after.Time)
	}
}

func TestOffFileSwitchesTheHooksOff(t *testing.T) {
	n := shared.Node("n2")
	set(t, n, "gpu.3.lost=true")
	off := filepath.Join(n.Dir, "off")
	if err := os.WriteFile(off, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(off) })
	id := submit(t, "sleep 1", "--gres=gpu:8", "-w", "n2")
	if j := wait(t, id, "COMPLETED"); j.Restarts != 0 {
		t.Errorf("%d restarts", j.Restarts)
	}
	if names := runsOf(n, id); len(names) > 0 {
		t.Errorf("left %v", names)
	}
	if all, _ := shared.Records(id); len(all) > 0 {
		t.Errorf("%d records", len(all))
	}
	undrained(t, "n2")
}

// A configuration that cannot be read must not cost a node, and must be said:
// the last good copy holds.
func TestBrokenConfiguration(t *testing.T) {
	n := shared.Node("n2")
	before := submit(t, "sleep 1", "--gres=gpu:1", "-w", "n2") // leaves a good copy
	wait(t, before, "COMPLETED")
	if err := os.WriteFile(n.Config(), []byte(ReadFile(n.Config())+"squeue == 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.SetMode(n, "enforce"); err != nil {
			t.Error(err)
		}
	})
	id := submit(t, "sleep 1", "--gres=gpu:1", "-w", "n2")
	if j := wait(t, id, "COMPLETED"); j.Restarts != 0 {
		t.Errorf("%d restarts", j.Restarts)
	}
	whole(t, recordOf(t, id)) // where the good copy says
	line := strings.Count(ReadFile(n.Config()), "\n")
	if said := logs(id); !strings.Contains(said, fmt.Sprintf("%s:%d", n.Config(), line)) {
		t.Errorf("the file and its line are not named:\n%s", said)
	}
	undrained(t, "n2")
}

// An unknown key is a warning for a hook, which goes on with the rest.
func TestUnknownKeyInTheConfiguration(t *testing.T) {
	n := shared.Node("n2")
	text := ReadFile(n.Config())
	if err := os.WriteFile(n.Config(), []byte("moode = \"observe\"\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.SetMode(n, "enforce"); err != nil {
			t.Error(err)
		}
	})
	id := submit(t, "sleep 1", "--gres=gpu:1", "-w", "n2")
	wait(t, id, "COMPLETED")
	whole(t, recordOf(t, id))
	if said := logs(id); !strings.Contains(said, "moode") {
		t.Errorf("the key is not named:\n%s", said)
	}
}

// Where the spool takes nothing the record goes to the fallback directory.
func TestSpoolThatTakesNothing(t *testing.T) {
	for _, c := range []struct{ name, options string }{
		{"read-only", "ro,size=64k"},
		{"full", "size=4k,nr_inodes=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := shared.Node("n2")
			if err := os.MkdirAll(n.Spool(), 0o755); err != nil {
				t.Fatal(err)
			}
			var flags uintptr
			options, ro := strings.CutPrefix(c.options, "ro,")
			if ro {
				flags = syscall.MS_RDONLY
			}
			if err := syscall.Mount("spool", n.Spool(), "tmpfs", flags, options); err != nil {
				t.Skipf("this machine does not let root mount a tmpfs: %v", err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(n.Spool(), syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			id := submit(t, "sleep 1", "--gres=gpu:1", "-w", "n2")
			wait(t, id, "COMPLETED")
			r := recordOf(t, id) // looks into the fallback directory too
			whole(t, r)
			found, _ := filepath.Glob(filepath.Join(n.Fallback(), "*"))
			if len(found) == 0 {
				t.Errorf("nothing in %s", n.Fallback())
			}
			if said := logs(id); !strings.Contains(said, n.Fallback()) {
				t.Errorf("the log does not say where the record is:\n%s", said)
			}
			undrained(t, "n2")
		})
	}
}

// A driver that never returns: the hooks decide at their deadlines, and one look
// without an answer is no failure: the job starts and the node stays.
func TestProbeHangs(t *testing.T) {
	n := shared.Node("n2")
	if left := shared.samplers(10 * time.Second); len(left) > 0 {
		t.Fatalf("a sampler of another test is at work: %v", left)
	}
	set(t, n, "call.*=hang")
	began := time.Now()
	id := submit(t, "sleep 1", "--gres=gpu:1", "-w", "n2")
	wait(t, id, "COMPLETED")
	// 7 s of prolog, 1 s of job, 2.5 s of epilog, and Slurm's own time.
	if d := time.Since(began); d > 13*time.Second {
		t.Errorf("all in all %s", d)
	}
	r := recordOf(t, id)
	if !r.Quality.NoStart && !r.Quality.NoEnd {
		t.Errorf("quality %+v of a run of which nothing could be read", r.Quality)
	}
	for _, g := range r.GPUs {
		if _, known := g.Get("energy_joules"); known {
			t.Error("energy is known although the driver never answered")
		}
	}
	undrained(t, "n2")
}

// A GPU job on a node whose driver is gone is a failure, not "no GPUs".
func TestDriverGone(t *testing.T) {
	n := shared.Node("n2")
	set(t, n, "driver.loaded=false")
	id := submit(t, "sleep 1", "--gres=gpu:1", "-w", "n2")
	if _, err := shared.WaitNode(t.Context(), "n2", patience, "IDLE+DRAIN"); err != nil {
		t.Fatalf("%v\n%s", err, logs(id))
	}
	s, err := shared.NodeState(t.Context(), "n2")
	if err != nil || !strings.HasPrefix(s.Reason, "[HC] NODRIVER") {
		t.Errorf("%q, %v", s.Reason, err)
	}
	if err := shared.Cancel(t.Context(), id); err != nil {
		t.Error(err)
	}
	if err := shared.Resume(t.Context(), "n2"); err != nil {
		t.Error(err)
	}
}

// HealthCheckProgram drains a node whose GPU is worn out, without a job.
func TestHealthCheckDrains(t *testing.T) {
	n := shared.Node("n1")
	set(t, n, "gpu.5.remap.failed=true")
	status, err := shared.Hook(t.Context(), n, "healthcheck.sh")
	if err != nil || status != 1 {
		t.Errorf("status %d, %v", status, err)
	}
	s, err := shared.NodeState(t.Context(), "n1")
	if want := "[HC] REMAPFAIL gpu=5 " + n.UUIDs[5]; err != nil || !strings.HasPrefix(s.Reason, want) || !s.Drained() {
		t.Errorf("%s %q, %v, want %q\n%s", s.State, s.Reason, err, want, n.HookLog())
	}
	if err := shared.Resume(t.Context(), "n1"); err != nil {
		t.Error(err)
	}
}

// Somebody else's reason is never overwritten.
func TestForeignDrainReasonStays(t *testing.T) {
	n := shared.Node("n2")
	const reason = "fan noise, ada"
	if _, err := shared.Slurm(t.Context(), "scontrol", "update", "nodename=n2", "state=drain", "reason="+reason); err != nil {
		t.Fatal(err)
	}
	set(t, n, "gpu.5.remap.failed=true")
	if _, err := shared.Hook(t.Context(), n, "healthcheck.sh"); err != nil {
		t.Error(err)
	}
	if s, err := shared.NodeState(t.Context(), "n2"); err != nil || s.Reason != reason {
		t.Errorf("reason %q, %v", s.Reason, err)
	}
	if err := shared.Resume(t.Context(), "n2"); err != nil {
		t.Error(err)
	}
}
