package stage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Freezer makes a frozen cgroup of version 1: what enters it sits in state D and
// is as deaf to KILL as a driver call that never returns, until the test ends.
func Freezer(t *testing.T) string {
	t.Helper()
	base := "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(base + "/cgroup.procs"); err != nil {
		base = t.TempDir()
		if err := unix.Mount("freezer", base, "cgroup", 0, "freezer"); err != nil {
			t.Skipf("a process in state D: no version 1 cgroup freezer can be mounted here: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(base, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	dir, err := os.MkdirTemp(base, "gpuhooks-stuck-")
	if err != nil {
		t.Skipf("a process in state D: the version 1 cgroup freezer cannot be used here: %v", err)
	}
	state := func(word string) {
		if err := os.WriteFile(filepath.Join(dir, "freezer.state"), []byte(word), 0o644); err != nil {
			t.Error(err)
		}
	}
	state("FROZEN")
	t.Cleanup(func() {
		state("THAWED") // who was killed dies now
		for end := time.Now().Add(time.Minute); os.Remove(dir) != nil; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%s could not be removed", dir)
				return
			}
		}
	})
	return dir
}
