//go:build cgo

package sim_test

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/sim"
)

func newNode(t *testing.T, profile string) *sim.Node {
	t.Helper()
	t.Parallel() // mostly they wait
	n, err := sim.NewNode(t.TempDir(), profile)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func set(t *testing.T, n *sim.Node, kv ...string) {
	t.Helper()
	if err := n.Set(kv...); err != nil {
		t.Fatal(err)
	}
}

// load starts a workload and waits until it is on its GPU.
func load(t *testing.T, n *sim.Node, args ...string) (kill func()) {
	t.Helper()
	cmd := n.Load(args...)
	cmd.Stderr = os.Stderr
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := false
	kill = func() {
		if !over {
			cmd.Process.Kill()
			cmd.Wait()
			over = true
		}
	}
	t.Cleanup(kill)
	waitBusy(t, out)
	return kill
}

// waitBusy waits for the line that a workload prints once it runs.
func waitBusy(t *testing.T, out io.Reader) {
	t.Helper()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the workload said %q: %v", line, err)
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s is %g, want %g within %g %%", what, got, want, tolerance*100)
	}
}

func TestEverySymbolIsExported(t *testing.T) {
	dir := t.TempDir()
	if err := sim.Build(dir); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(filepath.Join(dir, "libnvidia-ml.so")) // through the link
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if soname, _ := f.DynString(elf.DT_SONAME); !slices.Equal(soname, []string{"libnvidia-ml.so.1"}) {
		t.Errorf("soname is %q", soname)
	}
	dynamic, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for _, s := range dynamic {
		exported[s.Name] = s.Section != elf.SHN_UNDEF
	}
	if len(sim.Symbols()) < 428 {
		t.Errorf("only %d symbols in the list", len(sim.Symbols()))
	}
	for _, name := range sim.Symbols() {
		if !exported[name] {
			t.Errorf("%s is not exported", name)
		}
	}
}

func TestProfiles(t *testing.T) {
	tests := []struct {
		profile, driver, name string
		cuda, count           int
		card                  card
	}{
		{"dgx-h100", "580.95.05", "NVIDIA H100 80GB HBM3", 13000, 8,
			card{Memory: 81559 << 20, GPM: true, ECC: true, Links: 18, Persistence: true, Power: 72000, Limit: 700000, Gen: 5}},
		{"dgx-a100-mig", "580.95.05", "NVIDIA A100-SXM4-40GB", 13000, 8,
			card{Memory: 40960 << 20, ECC: true, MIG: true, Links: 12, Persistence: true, Power: 52000, Limit: 400000, Gen: 4}},
		{"hgx-h200", "570.172.08", "NVIDIA H200", 12080, 8,
			card{Memory: 143771 << 20, GPM: true, ECC: true, Links: 18, Persistence: true, Power: 76000, Limit: 700000, Gen: 5}},
		{"b200", "580.95.05", "NVIDIA B200", 13000, 8,
			card{Memory: 183359 << 20, GPM: true, ECC: true, Links: 18, Persistence: true, Power: 141000, Limit: 1000000, Gen: 5}},
		{"l40s-pcie", "580.95.05", "NVIDIA L40S", 13000, 4,
			card{Memory: 46068 << 20, ECC: true, Persistence: true, Power: 36000, Limit: 350000, Gen: 4}},
		{"l40s-idle", "580.95.05", "NVIDIA L40S", 13000, 4,
			card{Memory: 46068 << 20, ECC: true, Persistence: true, Power: 36000, Limit: 350000, Gen: 1}},
		{"h100-550", "550.163.01", "NVIDIA H100 80GB HBM3", 12040, 8,
			card{Memory: 81559 << 20, GPM: true, ECC: true, Links: 18, Persistence: true, Power: 72000, Limit: 700000, Gen: 5}},
		{"rtx4000-ada", "595.71.05", "NVIDIA RTX 4000 Ada Generation", 13020, 2,
			card{Memory: 20475 << 20, Power: 11000, Limit: 130000, Gen: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.profile, func(t *testing.T) {
			var got node
			look(t, newNode(t, tt.profile), &got, "inventory")
			if got.Driver != tt.driver || got.CUDA != tt.cuda || got.Count != tt.count || len(got.Cards) != tt.count {
				t.Fatalf("node is %+v", got)
			}
			uuids, minors, same := map[string]bool{}, map[int]bool{}, 0
			for i, c := range got.Cards {
				uuids[c.UUID], minors[c.Minor] = true, true
				if c.Minor == c.Index {
					same++
				}
				if c.Index != i || c.Name != tt.name || c.Serial == "" || c.PCI == "" {
					t.Errorf("card %d is %+v", i, c)
				}
			}
			if len(uuids) != tt.count || len(minors) != tt.count {
				t.Errorf("UUIDs or minors are not unique: %v %v", uuids, minors)
			}
			if same == tt.count {
				t.Error("every minor is the index: code that confuses them would pass")
			}
			first := got.Cards[0]
			first.Name, first.UUID, first.Serial, first.PCI, first.Minor = "", "", "", "", 0
			if fmt.Sprint(first) != fmt.Sprint(tt.card) {
				t.Errorf("the first card is\n%+v, want\n%+v", first, tt.card)
			}
		})
	}
}

func TestEnergyIsTheIntegralOfPower(t *testing.T) {
	n := newNode(t, "dgx-h100")
	var a, b, idle1, idle2 sum
	look(t, n, &idle1, "sums", "1")
	load(t, n, "--gpus", "0", "--sm", "0.82", "--tensor", "0.46", "--power", "520", "--memory", "20GiB")
	look(t, n, &a, "sums", "0")
	time.Sleep(700 * time.Millisecond)
	look(t, n, &b, "sums", "0")
	look(t, n, &idle2, "sums", "1")
	near(t, "energy under load", b.Energy-a.Energy, 520*(b.At-a.At), 0.005)
	near(t, "energy at rest", idle2.Energy-idle1.Energy, 72*(idle2.At-idle1.At), 0.005)
	near(t, "power", b.Power, 520, 0)
	if b.Util != 100 || b.Used != 20<<30 {
		t.Errorf("under load: util %d, memory %d", b.Util, b.Used)
	}
	if idle2.Util != 0 || idle2.Used != 0 {
		t.Errorf("the GPU beside it: util %d, memory %d", idle2.Util, idle2.Used)
	}
}

// Several loads on one GPU add up, but not beyond what the card can do.
func TestLoadsAddUpAndAreClamped(t *testing.T) {
	n := newNode(t, "dgx-h100")
	for range 3 {
		load(t, n, "--gpus", "2", "--sm", "0.5", "--util", "1", "--power", "400", "--memory", "30GiB")
	}
	var a, b sum
	look(t, n, &a, "sums", "2")
	time.Sleep(300 * time.Millisecond)
	look(t, n, &b, "sums", "2")
	near(t, "power", b.Power, 700, 0)
	near(t, "energy", b.Energy-a.Energy, 700*(b.At-a.At), 0.005)
	near(t, "throttled time", float64(b.ThrottleNanos-a.ThrottleNanos), (b.At-a.At)*1e9, 0.01)
	if want := uint64(81559-551) << 20; b.Used != want {
		t.Errorf("memory used is %d, want %d: no more than there is", b.Used, want)
	}
	var g gpmResult
	look(t, n, &g, "gpm", "2", "250ms", "2")
	near(t, "SM active", g.value(2), 100, 1e-9)
}

func TestMIGDevices(t *testing.T) {
	n := newNode(t, "dgx-a100-mig")
	var list []migDevice
	look(t, n, &list, "mig", "0")
	var got []string
	for _, m := range list {
		got = append(got, fmt.Sprintf("%d gi%d/ci%d %s %d MiB %d SMs util %d", m.Index, m.GI, m.CI, m.Name, m.Memory>>20, m.SMs, m.Util))
		if !strings.HasPrefix(m.UUID, "MIG-") || !strings.HasPrefix(m.Parent, "GPU-") {
			t.Errorf("%+v", m)
		}
	}
	want := []string{ // index 2 is a hole; instance ids are no function of the placement
		"0 gi2/ci0 NVIDIA A100-SXM4-40GB MIG 3g.20gb 20480 MiB 42 SMs util 3",
		"1 gi3/ci0 NVIDIA A100-SXM4-40GB MIG 2g.10gb 10240 MiB 28 SMs util 3",
		"3 gi9/ci0 NVIDIA A100-SXM4-40GB MIG 1g.5gb 5120 MiB 14 SMs util 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("MIG devices:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := n.Clear(1); err != nil {
		t.Fatal(err)
	}
	for gpu, what := range map[string]string{"1": "a GPU after its reset", "2": "MIG mode without instances"} {
		if look(t, n, &list, "mig", gpu); len(list) != 0 {
			t.Errorf("%s has %v", what, list)
		}
	}
}

func TestGPUInstances(t *testing.T) {
	n := newNode(t, "dgx-a100-mig")
	var got []string
	look(t, n, &got, "instances", "0")
	// 3g at 0, 2g at 4 and 1g at 6 leave nothing; the memory slice at 7 belongs to no 1g.
	want := []string{"19:0:9@6+1", "14:0:3@4+2", "9:0:2@0+4", "5:0", "0:0", "20:0", "15:0"}
	if !slices.Equal(got, want) {
		t.Errorf("instances are %v, want %v", got, want)
	}
	look(t, n, &got, "instances", "2")
	if want := []string{"19:7", "14:3", "9:2", "5:1", "0:1", "20:7", "15:4"}; !slices.Equal(got, want) {
		t.Errorf("an empty GPU has %v, want %v", got, want)
	}
}

// A library of an older driver lacks symbols; calling one ends the process, as with the real one.
func TestAnOlderLibraryLacksSymbols(t *testing.T) {
	n := newNode(t, "dgx-h100")
	if err := n.SetDriver("550"); err != nil {
		t.Fatal(err)
	}
	var r callResult
	look(t, n, &r, "call", "0")
	if r.Return != 0 || r.Text != "NVIDIA H100 80GB HBM3" {
		t.Errorf("the older library answers %+v", r)
	}
	if err := unattended(t, n, "margin", "0").Wait(); err == nil || !strings.Contains(err.Error(), "127") {
		t.Errorf("a call of a symbol that is not there ended with %v, want status 127", err)
	}
}
