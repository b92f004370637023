//go:build cgo

package sim_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/sim"
)

func TestFaults(t *testing.T) {
	tests := []struct {
		name, set string
		gpu       string
		want      int
		atLeast   float64 // seconds
	}{
		{"a name", "call.nvmlDeviceGetName=GPU_IS_LOST", "0", 15, 0},
		{"a full name", "call.nvmlDeviceGetName=NVML_ERROR_RESET_REQUIRED", "0", 16, 0},
		{"a number", "call.nvmlDeviceGetName=999", "0", 999, 0},
		{"one GPU", "gpu.3.call.nvmlDeviceGetName=TIMEOUT", "3", 10, 0},
		{"another GPU", "gpu.3.call.nvmlDeviceGetName=TIMEOUT", "2", 0, 0},
		{"delay", "call.nvmlDeviceGetName=delay=30ms", "0", 0, 0.03},
		{"delay and code", "call.nvmlDeviceGetName=UNKNOWN,delay=30ms", "0", 999, 0.03},
		{"every call", "call.*=delay=2ms", "0", 0, 0.002},
	}
	n := newNode(t, "dgx-h100")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set(t, n, tt.set)
			var r callResult
			look(t, n, &r, "call", tt.gpu)
			if r.Return != tt.want || r.Seconds < tt.atLeast {
				t.Errorf("answers %d after %g s, want %d after %g s", r.Return, r.Seconds, tt.want, tt.atLeast)
			}
			key, _, _ := strings.Cut(tt.set, "=")
			if err := n.Unset(key); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestGarbageHangAndCrash(t *testing.T) {
	n := newNode(t, "dgx-h100")
	set(t, n, "call.nvmlDeviceGetName=garbage")
	var r callResult
	look(t, n, &r, "call", "0")
	if r.Return != 0 || r.Text == "NVIDIA H100 80GB HBM3" || r.Text == "" {
		t.Errorf("garbage is %d %q", r.Return, r.Text)
	}

	set(t, n, "call.nvmlDeviceGetName=hang")
	cmd := unattended(t, n, "call", "0")
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		t.Errorf("a call that hangs came back: %v", err)
	case <-time.After(300 * time.Millisecond):
		cmd.Process.Kill()
		<-done
	}

	set(t, n, "call.nvmlDeviceGetName=crash")
	cmd = unattended(t, n, "call", "0")
	if err := cmd.Wait(); err == nil {
		t.Error("a call that crashes ended well")
	}
}

// unattended starts a client whose end the test itself watches.
func unattended(t *testing.T, n *sim.Node, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{"SIM_CLIENT=" + name, "SIM_LIBRARY=" + n.Library()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestDelaysOverlapUnlessTheDriverHasOneLock(t *testing.T) {
	n := newNode(t, "dgx-h100")
	set(t, n, "call.nvmlDeviceGetName=delay=20ms")
	var together, inTurn float64
	look(t, n, &together, "slow")
	set(t, n, "global_lock=true")
	look(t, n, &inTurn, "slow")
	if together > 0.1 || inTurn < 0.16 {
		t.Errorf("eight calls of 20 ms take %g s, with one lock %g s", together, inTurn)
	}
}

func TestDriverStates(t *testing.T) {
	n := newNode(t, "dgx-h100")
	for kv, want := range map[string]int{"driver.loaded=false": 9, "driver.mismatch=true": 18} {
		set(t, n, kv)
		var got node
		look(t, n, &got, "inventory")
		if got.Init != want {
			t.Errorf("%s: Init answers %d, want %d", kv, got.Init, want)
		}
		_, statErr := os.Stat(filepath.Join(n.Root(), "proc/driver/nvidia/version"))
		if gone := os.IsNotExist(statErr); gone != (kv == "driver.loaded=false") {
			t.Errorf("%s: /proc/driver/nvidia/version gone is %t", kv, gone)
		}
		key, _, _ := strings.Cut(kv, "=")
		if err := n.Unset(key); err != nil {
			t.Fatal(err)
		}
	}
}

// A reset or a reloaded driver begins to count again.
func TestCountersBeginAgain(t *testing.T) {
	n := newNode(t, "dgx-h100")
	set(t, n, "gpu.*.power=600")
	time.Sleep(200 * time.Millisecond)
	set(t, n, "gpu.*.power=1")
	var before, reset, other, reloaded sum
	look(t, n, &before, "sums", "3")
	if err := n.Clear(3); err != nil {
		t.Fatal(err)
	}
	look(t, n, &reset, "sums", "3")
	look(t, n, &other, "sums", "4")
	if reset.Energy >= before.Energy || other.Energy <= before.Energy {
		t.Errorf("energy %g J, after a reset of this GPU %g J, of the other %g J", before.Energy, reset.Energy, other.Energy)
	}
	set(t, n, "driver.loaded=false")
	set(t, n, "driver.loaded=true")
	look(t, n, &reloaded, "sums", "4")
	if reloaded.Energy >= other.Energy {
		t.Errorf("energy %g J, after a reload of the driver %g J", other.Energy, reloaded.Energy)
	}
}

func TestLostAbsentAndCleared(t *testing.T) {
	n := newNode(t, "dgx-h100")
	set(t, n, "gpu.3.lost=true", "gpu.3.ecc.volatile.uncorrected.dram=2", "gpu.3.recovery=2")
	var got node
	look(t, n, &got, "inventory")
	if want := []int{0, 0, 0, 15, 0, 0, 0, 0}; got.Count != 8 || !slices.Equal(got.HandleReturn, want) {
		t.Errorf("a lost GPU: %d GPUs, handles %v", got.Count, got.HandleReturn)
	}
	config, err := os.ReadFile(filepath.Join(n.Root(), "sys/bus/pci/devices/0000:61:00.0/config"))
	if err != nil || config[0] != 0xff {
		t.Errorf("the lost GPU's PCI configuration is % x, %v", config[:min(4, len(config))], err)
	}
	if err := n.Clear(3); err != nil {
		t.Fatal(err)
	}
	var f []fieldResult
	look(t, n, &f, "fields", "3", "230", "12")
	if f[0].Value != 0 || f[1].Value != 0 {
		t.Errorf("after the reset: recovery action and errors %v", f)
	}
	set(t, n, "gpu.3.absent=true")
	look(t, n, &got, "inventory")
	if got.Count != 7 || got.Cards[3].PCI != "00000000:9D:00.0" || got.Cards[3].Index != 3 {
		t.Errorf("without GPU 3: %d GPUs, the fourth is %+v", got.Count, got.Cards[3])
	}
	if _, err := os.Stat(filepath.Join(n.Root(), "sys/bus/pci/devices/0000:61:00.0")); !os.IsNotExist(err) {
		t.Errorf("the absent GPU is on the bus: %v", err)
	}
}

func TestVersionsAreChecked(t *testing.T) {
	n := newNode(t, "dgx-h100")
	var got []int
	look(t, n, &got, "versions")
	if want := []int{0, 0, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("versioned calls answer %v, want %v", got, want)
	}
	header, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}/pkg/nvml", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "versions")
	args := []string{"-I" + strings.TrimSpace(string(header)), "-Wno-deprecated-declarations", "-o", program, "testdata/versions.c", "-ldl"}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, n.Library()).Output()
	if want := strings.TrimSpace(strings.Repeat("25 ", 10)) + "\n"; err != nil || string(out) != want {
		t.Errorf("wrong versions are answered %q, %v", out, err)
	}
}

func TestSetRefusesWhatItDoesNotKnow(t *testing.T) {
	n := newNode(t, "dgx-h100")
	before, _ := os.ReadFile(n.Scenario())
	for _, kv := range []string{"gpu.3.lots=true", "gpu.8.lost=true", "gpu.3.lost=maybe", "gpus", "power=3", "gpu.0.power=much"} {
		if err := n.Set(kv); err == nil {
			t.Errorf("%s was accepted", kv)
		}
	}
	after, _ := os.ReadFile(n.Scenario())
	if string(after) != string(before) {
		t.Error("a refused change changed the scenario")
	}
}
