//go:build cgo

package sim_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestProcessesComeAndGo(t *testing.T) {
	n := newNode(t, "dgx-h100")
	cmd := n.Load("--sm", "0.5", "--memory", "1GiB")
	cmd.Env = []string{"CUDA_VISIBLE_DEVICES=1,4"}
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitBusy(t, out)
	for gpu, want := range map[string][]int{"0": {}, "1": {cmd.Process.Pid}, "4": {cmd.Process.Pid}} {
		var got []int
		look(t, n, &got, "processes", gpu)
		if !slices.Equal(got, want) {
			t.Errorf("processes of GPU %s are %v, want %v", gpu, got, want)
		}
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	var got []int
	look(t, n, &got, "processes", "1")
	if len(got) != 0 {
		t.Errorf("after SIGKILL GPU 1 has %v", got)
	}
	time.Sleep(200 * time.Millisecond)
	var a, b sum
	look(t, n, &a, "sums", "1")
	time.Sleep(100 * time.Millisecond)
	look(t, n, &b, "sums", "1")
	near(t, "power after SIGKILL", (b.Energy-a.Energy)/(b.At-a.At), 72, 0.005)
}

// Whoever looks after a kill counts the load until it died, within 50 ms.
func TestAKilledLoadIsIntegratedUntilItsEnd(t *testing.T) {
	n := newNode(t, "dgx-h100")
	var a, b sum
	look(t, n, &a, "sums", "0")
	cmd := n.Load("--gpus", "0", "--sm", "1", "--power", "672")
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitBusy(t, out)
	from := monotonicSeconds()
	time.Sleep(600 * time.Millisecond)
	to := monotonicSeconds()
	cmd.Process.Kill()
	cmd.Wait()
	time.Sleep(300 * time.Millisecond) // nobody looks meanwhile
	look(t, n, &b, "sums", "0")
	busy := (b.Energy - a.Energy - 72*(b.At-a.At)) / 600
	if busy < to-from-0.05 || busy > to-from+0.05 {
		t.Errorf("counted %g s of load, it lived for %g s", busy, to-from)
	}
}

func TestScenarioIsReadAgain(t *testing.T) {
	n := newNode(t, "dgx-h100")
	var a, b sum
	look(t, n, &a, "sums", "5")
	time.Sleep(200 * time.Millisecond)
	set(t, n, "gpu.5.power=300")
	info, err := os.Stat(n.Scenario())
	if err != nil {
		t.Fatal(err)
	}
	at := monotonicSeconds() - time.Since(info.ModTime()).Seconds()
	time.Sleep(200 * time.Millisecond)
	look(t, n, &b, "sums", "5")
	// What had passed at the change is counted with what was true then.
	near(t, "energy over a change", b.Energy-a.Energy, 72*(at-a.At)+300*(b.At-at), 0.02)
	near(t, "power", b.Power, 300, 0)
}

func TestTwoProcessesAgree(t *testing.T) {
	n := newNode(t, "dgx-h100")
	load(t, n, "--gpus", "0", "--power", "500")
	_, first := start(t, n, "sums", "0")
	_, second := start(t, n, "sums", "0")
	var a, b sum
	first(&a)
	second(&b)
	if d := b.Energy - a.Energy - 500*(b.At-a.At); d > 1 || d < -1 {
		t.Errorf("two processes disagree by %g J", d)
	}
}

func TestEventsReachWhoWaits(t *testing.T) {
	n := newNode(t, "dgx-h100")
	ready := filepath.Join(t.TempDir(), "ready")
	_, result := start(t, n, "event", ready)
	waitForFile(ready)
	time.Sleep(20 * time.Millisecond)
	if err := n.Xid(3, 79, ""); err != nil {
		t.Fatal(err)
	}
	var e eventResult
	result(&e)
	if e.Return != 0 || e.Xid != 79 || e.UUID == "" {
		t.Errorf("event %+v", e)
	}
}

func TestCallsAreCounted(t *testing.T) {
	n := newNode(t, "dgx-h100")
	var r callResult
	look(t, n, &r, "call", "3")
	calls, err := n.Calls()
	if err != nil || len(calls) != 0 {
		t.Fatalf("counted without being asked: %v, %v", calls, err)
	}
	set(t, n, "count_calls=true")
	look(t, n, &r, "call", "3")
	look(t, n, &r, "call", "4")
	calls, err = n.Calls()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"nvmlDeviceGetName": 2, "nvmlDeviceGetName gpu=3": 1, "nvmlDeviceGetName gpu=4": 1, "nvmlInit_v2": 2} {
		if calls[name] != want {
			t.Errorf("%s: %d calls, want %d (%v)", name, calls[name], want, calls)
		}
	}
	if err := n.ResetCalls(); err != nil {
		t.Fatal(err)
	}
	if calls, _ := n.Calls(); len(calls) != 0 {
		t.Errorf("after the reset: %v", calls)
	}
}

func TestUtilisationRing(t *testing.T) {
	n := newNode(t, "dgx-h100")
	load(t, n, "--gpus", "0", "--util", "0.5", "--sm", "0.5")
	time.Sleep(700 * time.Millisecond)
	var got []int
	look(t, n, &got, "samples", "0")
	if len(got) < 3 || got[len(got)-1] != 50 || got[len(got)-2] != 50 {
		t.Errorf("ring is %v, want 50 at its end", got)
	}
}
