package driver

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/gpu"
)

// TestMain lets this test binary be the probe: started as `… read` it behaves
// as --nvml says, since a probe's environment is empty.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "read" || os.Args[1] == "sample") {
		f := flag.NewFlagSet("fake", flag.ExitOnError)
		root, run, how := f.String("root", "", ""), f.String("run", "", ""), f.String("nvml", "", "")
		for _, ignored := range []string{"identity", "tier", "after", "gpus", "tick", "series", "spool", "journal"} {
			f.String(ignored, "", "")
		}
		f.Parse(os.Args[2:])
		if os.Args[1] == "sample" {
			fakeSampler(*run, *root, *how)
		}
		fakeProbe(*root, *how)
	}
	os.Exit(m.Run())
}

func say(l Line) {
	b, _ := json.Marshal(l)
	os.Stdout.Write(append(b, '\n'))
}

func hello() {
	say(Line{Hello: &Hello{Protocol: Protocol, Version: "1", PID: os.Getpid(), BootID: "boot"}})
}

func card(i int, whole bool) {
	say(Line{GPU: &gpu.GPU{Identity: gpu.Identity{Index: i, UUID: fmt.Sprintf("GPU-%d", i)}, Complete: whole}})
}

func whole() {
	hello()
	say(Line{Presence: &gpu.Presence{DriverLoad: "1"}})
	say(Line{Kernel: &Kernel{LastSeq: 7}})
	say(Line{Driver: &gpu.Driver{Count: gpu.Some(2)}})
	card(1, false)
	card(0, false)
	card(0, true)
	card(1, true)
	say(Line{Done: &Done{Calls: 42}})
}

func forever() { time.Sleep(time.Hour) }

// fakeProbe behaves in the given way. dir is for what it leaves.
func fakeProbe(dir, how string) {
	switch how {
	case "whole":
		whole()
	case "fds":
		var names []string
		entries, _ := os.ReadDir("/proc/self/fd")
		for _, e := range entries {
			to, _ := os.Readlink("/proc/self/fd/" + e.Name())
			names = append(names, e.Name()+" "+to)
		}
		names = append(names, "env "+strings.Join(os.Environ(), ","))
		sid, _ := unix.Getsid(0)
		names = append(names, fmt.Sprintf("session %v", sid == os.Getpid()))
		os.WriteFile(filepath.Join(dir, "fds"), []byte(strings.Join(names, "\n")), 0o644)
		whole()
	case "never":
		forever()
	case "presence":
		hello()
		say(Line{Presence: &gpu.Presence{}})
		forever()
	case "half of the cards":
		hello()
		say(Line{Driver: &gpu.Driver{Count: gpu.Some(2)}})
		card(0, true)
		forever()
	case "late":
		hello()
		time.Sleep(600 * time.Millisecond)
		whole()
	case "crash":
		hello()
		card(0, true)
		fmt.Fprintln(os.Stderr, "relocation error: no such symbol")
		os.Exit(127)
	case "killed":
		hello()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forever()
	case "ends":
		hello()
	case "ignores TERM":
		signal.Ignore(syscall.SIGTERM)
		hello()
		forever()
	case "frozen":
		hello()
		os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o644)
		os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("FROZEN"), 0o644)
		forever()
	case "garbage":
		fmt.Println("Segmentation fault in line 3 of {")
		forever()
	case "garbage later":
		hello()
		fmt.Println(`{"gpu": 17}`)
		forever()
	case "empty lines":
		hello()
		fmt.Println("{}")
	case "no hello":
		card(0, true)
		forever()
	case "half a line":
		hello()
		fmt.Print(`{"gpu":{"index":0,"uu`)
		forever()
	case "half a line, then ends":
		hello()
		fmt.Print(`{"gpu":{"index":0,"uu`)
	case "another version":
		say(Line{Hello: &Hello{Protocol: "gpuhooks.probe/2"}})
		forever()
	case "long line":
		hello()
		fmt.Print(strings.Repeat("x", maxLine+10))
		forever()
	case "huge":
		hello()
		for b := []byte(`{"driver":{"version":"` + strings.Repeat("x", 100000) + `"}}` + "\n"); ; {
			if _, err := os.Stdout.Write(b); err != nil {
				os.Exit(1)
			}
		}
	case "noisy":
		for i := range 100000 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		whole()
	case "closes stdout":
		hello()
		os.Stdout.Close()
		forever()
	case "child holds the pipe", "child":
		if how == "child" {
			forever()
		}
		hello()
		c := exec.Command("/proc/self/exe", "read", "--nvml", "child")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.Start()
	}
	os.Exit(0)
}

// fakeSampler takes the lock, shows one heartbeat and stays.
func fakeSampler(run, dir, how string) {
	f, err := os.OpenFile(filepath.Join(run, SamplerLock), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		os.Exit(0)
	}
	p, _ := machine.Process(os.Getpid())
	boot, _ := machine.BootID()
	h := Heartbeat{PID: p.PID, StartTicks: p.Start, BootID: boot, Time: time.Now().UTC()}
	b, _ := json.Marshal(h)
	os.WriteFile(filepath.Join(run, SamplerHeartbeat), b, 0o644)
	switch how {
	case "ignores TERM":
		signal.Ignore(syscall.SIGTERM)
	case "frozen":
		os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o644)
		os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("FROZEN"), 0o644)
	}
	forever()
}

// freezer makes a cgroup of the version 1 freezer: a task in it sits in state D
// and does not die, as one in a driver call that never returns.
func freezer(t *testing.T) string {
	t.Helper()
	base := "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(base + "/cgroup.procs"); err != nil {
		base = t.TempDir()
		if err := unix.Mount("freezer", base, "cgroup", 0, "freezer"); err != nil {
			t.Skipf("a probe in state D: no version 1 cgroup freezer can be mounted here: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(base, unix.MNT_DETACH) })
	}
	dir := filepath.Join(base, fmt.Sprintf("gpuhooks-test-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("a probe in state D: the version 1 cgroup freezer cannot be used here: %v", err)
	}
	t.Cleanup(func() {
		thaw(t, dir)
		for range 100 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s could not be removed", dir)
	})
	return dir
}

func thaw(t *testing.T, dir string) {
	if err := os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0o644); err != nil {
		t.Error(err)
	}
}
