//go:build cgo

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/sim"
)

// The binding keeps to the first library that it opened, so every look needs a
// process of its own: this test binary, which then is gpu-probe.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "read" || os.Args[1] == "sample" || os.Args[1] == "accept" || os.Args[1] == "--version") {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, time.Now()))
	}
	os.Exit(m.Run())
}

// probe returns a command that is gpu-probe. Its environment is empty but for
// what keeps the race detector, where this is built with it, from sleeping a
// second at each exit.
func probe(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0"}
	return cmd
}

func newNode(t *testing.T, profile string, set ...string) *sim.Node {
	t.Helper()
	n, err := sim.NewNode(filepath.Join(t.TempDir(), "node"), profile)
	if err != nil {
		t.Fatal(err)
	}
	if len(set) > 0 {
		if err := n.Set(set...); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// heard is everything that one look said.
type heard struct {
	lines    []driver.Line
	presence gpu.Presence
	kernel   driver.Kernel
	driver   gpu.Driver
	early    map[int]gpu.GPU
	gpus     map[int]gpu.GPU
	faults   []gpu.Fault
}

func readOnce(t *testing.T, n *sim.Node, args ...string) heard {
	t.Helper()
	args = append([]string{"read", "--root", n.Root(), "--nvml", n.Library(), "--identity", filepath.Join(n.Dir, "identity.json")}, args...)
	out, err := probe(t, args...).Output()
	if err != nil {
		t.Fatalf("gpu-probe read: %v", err)
	}
	a := heard{early: map[int]gpu.GPU{}, gpus: map[int]gpu.GPU{}}
	for line := range strings.Lines(string(out)) {
		var l driver.Line
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("line %.80q: %v", line, err)
		}
		a.lines = append(a.lines, l)
		switch {
		case l.Presence != nil:
			a.presence = *l.Presence
		case l.Kernel != nil:
			a.kernel = *l.Kernel
		case l.Driver != nil:
			a.driver = *l.Driver
		case l.Fault != nil:
			a.faults = append(a.faults, *l.Fault)
		case l.GPU != nil && l.GPU.Complete:
			a.gpus[l.GPU.Index] = *l.GPU
		case l.GPU != nil:
			a.early[l.GPU.Index] = *l.GPU
		}
	}
	if first, last := a.lines[0], a.lines[len(a.lines)-1]; first.Hello == nil || first.Hello.Protocol != driver.Protocol || last.Done == nil {
		t.Errorf("does not begin with hello and end with done: %+v … %+v", first, last)
	}
	return a
}

func TestReadSaysWhatTheScenarioSays(t *testing.T) {
	n := newNode(t, "dgx-h100", "gpu.2.ecc.volatile.uncorrected.dram=3", "gpu.2.ecc.volatile.corrected.sram=5", "gpu.2.ecc.aggregate.uncorrected.sram=7",
		"gpu.2.recovery=1", "gpu.2.remap.pending=true", "gpu.2.remap.uncorrectable=1", "gpu.4.pcie.width=8", "gpu.4.nvlink.3.active=false",
		"gpu.5.persistence=false", "gpu.5.memory.used=3GiB", "gpu.5.sm=0.5", "gpu.5.util=0.9", "gpu.6.pcie.replay=11")
	a := readOnce(t, n)
	if len(a.gpus) != 8 || len(a.early) != 8 || len(a.faults) != 0 {
		t.Fatalf("%d GPUs, %d early, faults %v", len(a.gpus), len(a.early), a.faults)
	}
	if v, _ := a.driver.Version.Get(); v != "580.95.05" || a.driver.Count.Or(0) != 8 {
		t.Errorf("driver %+v", a.driver)
	}
	g := a.gpus[0]
	if g.UUID != "GPU-86cc67f6-0f26-48e6-a5c1-003bb1360aa4" || g.PCI != "00000000:1B:00.0" || g.Minor.Or(-1) != 2 ||
		g.Name != "NVIDIA H100 80GB HBM3" || g.Architecture.Or("") != "hopper" || g.NVLinks.Or(0) != 18 || g.PCIeMaxWidth.Or(0) != 16 {
		t.Errorf("identity %+v", g.Identity)
	}
	if len(g.Faults) != 0 {
		t.Errorf("faults of a healthy GPU: %v", g.Faults)
	}
	g = a.gpus[2]
	for _, l := range []gpu.GPU{a.early[2], g} { // the decisive ones are in both lines
		if l.Health.RecoveryAction.Or(0) != 1 || l.Counters[gpu.ECCVolUncorrDRAM] != 3 {
			t.Errorf("complete %v: recovery %v, counters %v", l.Complete, l.Health.RecoveryAction, l.Counters)
		}
		if r, ok := l.Health.RowRemap.Get(); !ok || !r.Pending || r.Failure || r.Uncorrected != 1 {
			t.Errorf("row remap %+v", r)
		}
	}
	if g.Counters[gpu.ECCVolCorrSRAM] != 5 || g.Counters[gpu.ECCAggUncorrSRAM] != 7 || g.Counters[gpu.ECCVolUncorrSRAM] != 0 {
		t.Errorf("counters %v", g.Counters)
	}
	if g := a.gpus[4]; g.Health.PCIeWidth.Or(0) != 8 || g.Health.NVLinksActive.Or(0) != 17 {
		t.Errorf("width %v, links %v", g.Health.PCIeWidth, g.Health.NVLinksActive)
	}
	g = a.gpus[5]
	if p, ok := g.Health.Persistence.Get(); !ok || p {
		t.Errorf("persistence %v", g.Health.Persistence)
	}
	if g.Readings[gpu.MemoryUsed] != 3<<30 || g.Readings[gpu.Utilization] != 0.9 {
		t.Errorf("readings %v", g.Readings)
	}
	if a.gpus[6].Counters[gpu.PCIeReplay] != 11 {
		t.Errorf("replay %v", a.gpus[6].Counters[gpu.PCIeReplay])
	}
	for i, g := range a.gpus {
		for _, c := range []gpu.Counter{gpu.EnergyMillijoules, gpu.SMCyclesElapsed, gpu.ThrottlePowerCap, gpu.NVLinkTxBytes, gpu.PCIeFatal} {
			if _, ok := g.Counters[c]; !ok {
				t.Errorf("gpu %d has no %s", i, c)
			}
		}
	}
}

func TestReadOlderDriversAndCards(t *testing.T) {
	n := newNode(t, "dgx-h100", "gpm.cumulative=false", "gpu.*.recovery=none", "gpu.*.throttle.counters=false", "gpu.1.gpm.supported=false",
		"gpu.1.ecc=none", "gpu.1.remap.correctable=none", "gpu.1.power.supported=false", "gpu.1.nvlinks=0")
	a := readOnce(t, n)
	g := a.gpus[0]
	for _, c := range []gpu.Counter{gpu.SMCyclesElapsed, gpu.ThrottleSWThermal} {
		if v, ok := g.Counters[c]; ok {
			t.Errorf("%s = %d, which this driver does not have", c, v)
		}
	}
	if g.Health.RecoveryAction.IsSet() || !g.Health.GPMSupported.Or(false) || len(g.Faults) != 0 {
		t.Errorf("health %+v, faults %v", g.Health, g.Faults)
	}
	g = a.gpus[1]
	for _, c := range []gpu.Counter{gpu.ECCVolUncorrDRAM, gpu.ECCVolUncorrSRAM, gpu.RemapCorrected, gpu.EnergyMillijoules, gpu.NVLinkTxBytes} {
		if v, ok := g.Counters[c]; ok {
			t.Errorf("%s = %d, which this card does not have", c, v)
		}
	}
	if g.Health.RowRemap.IsSet() || g.Health.ECC.IsSet() || g.Health.GPMSupported.Or(true) || g.Health.NVLinksActive.IsSet() || len(g.Faults) != 0 {
		t.Errorf("health %+v, faults %v", g.Health, g.Faults)
	}
	if _, ok := g.Readings[gpu.Power]; ok {
		t.Errorf("power %v", g.Readings[gpu.Power])
	}
}

func TestOneGPUsTroubleLeavesTheOthersWhole(t *testing.T) {
	for _, c := range []struct {
		name, set string
		cached    bool
		kind      gpu.FaultKind
	}{
		{"lost", "gpu.3.lost=true", true, gpu.FaultLost},
		{"lost before anybody looked", "gpu.3.lost=true", false, gpu.FaultLost},
		{"reset required", "gpu.3.call.nvmlDeviceGetUUID=16", true, gpu.FaultResetRequired},
		{"unknown error", "gpu.3.call.nvmlDeviceGetMigMode=999", true, gpu.FaultOther},
		{"garbage", "gpu.3.call.nvmlDeviceGetTemperature=garbage", true, gpu.FaultGarbage},
		{"no permission", "gpu.3.call.nvmlDeviceGetComputeRunningProcesses_v3=4", true, gpu.FaultPermission},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, "dgx-h100")
			if c.cached {
				readOnce(t, n)
			}
			if err := n.Set(c.set); err != nil {
				t.Fatal(err)
			}
			a := readOnce(t, n)
			if len(a.gpus) != 8 {
				t.Fatalf("%d GPUs", len(a.gpus))
			}
			for i, g := range a.gpus {
				if i == 3 {
					if !gpu.HasFault(g.Faults, c.kind) {
						t.Errorf("faults %v, want %s", g.Faults, c.kind)
					}
					if g.UUID != "GPU-98130bf5-7973-4cf2-abd5-9d8077ac4493" || g.PCI != "00000000:61:00.0" || g.Minor.Or(-1) != 1 {
						t.Errorf("identity %+v", g.Identity)
					}
				} else if len(g.Faults) != 0 || !g.Health.Persistence.Or(false) {
					t.Errorf("gpu %d suffers too: %v", i, g.Faults)
				}
			}
		})
	}
}

func TestReadWithoutADriver(t *testing.T) {
	for _, c := range []struct {
		set  string
		kind gpu.FaultKind
	}{
		{"driver.loaded=false", gpu.FaultNoDriver},
		{"driver.mismatch=true", gpu.FaultMismatch},
	} {
		n := newNode(t, "dgx-h100", c.set)
		a := readOnce(t, n)
		if !gpu.HasFault(a.faults, c.kind) || len(a.gpus) != 0 {
			t.Errorf("%s: faults %v, %d GPUs", c.set, a.faults, len(a.gpus))
		}
	}
	n := newNode(t, "dgx-h100")
	if err := os.Remove(n.Library()); err != nil {
		t.Fatal(err)
	}
	if a := readOnce(t, n); !gpu.HasFault(a.faults, gpu.FaultNoLibrary) {
		t.Errorf("no library: faults %v", a.faults)
	}
}

// A lost card can keep NVML from starting at all: then it starts without
// attaching to any.
func TestReadWhereACardKeepsNVMLFromStarting(t *testing.T) {
	n := newNode(t, "dgx-h100", "call.nvmlInit_v2=15", "gpu.3.lost=true")
	a := readOnce(t, n)
	if len(a.gpus) != 8 || len(a.faults) != 0 || !gpu.HasFault(a.gpus[3].Faults, gpu.FaultLost) || len(a.gpus[2].Faults) != 0 {
		t.Errorf("%d GPUs, faults %v", len(a.gpus), a.faults)
	}
}

func TestReadMIG(t *testing.T) {
	n := newNode(t, "dgx-a100-mig", "count_calls=true")
	readOnce(t, n)
	if err := n.ResetCalls(); err != nil {
		t.Fatal(err)
	}
	a := readOnce(t, n)
	instances := 0
	counts, err := n.Calls()
	if err != nil {
		t.Fatal(err)
	}
	calls := perGPU(counts)
	for i, g := range a.gpus {
		instances += len(g.Instances)
		for _, in := range g.Instances {
			if !strings.HasPrefix(in.UUID, "MIG-") || !strings.Contains(in.Profile, "g.") || !in.MemoryTotal.IsSet() || len(in.Faults) != 0 {
				t.Errorf("instance %+v", in)
			}
		}
		if got, most := calls[i], 25+8*len(g.Instances); got == 0 || got > most {
			t.Errorf("gpu %d: %d calls for %d instances, at most %d", i, got, len(g.Instances), most)
		}
	}
	if instances == 0 {
		t.Error("no instances")
	}
}

func TestReadMIGWithActivity(t *testing.T) {
	n := newNode(t, "dgx-h100", "count_calls=true", "gpu.1.mig.mode=true",
		"gpu.1.mig.5=gi=5,ci=0,profile=1g.10gb,start=6,size=1,uuid=MIG-11111111-1111-4111-8111-111111111111")
	readOnce(t, n)
	if err := n.ResetCalls(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(150 * time.Millisecond) // GPM's counters are new each tenth of a second
	g := readOnce(t, n).gpus[1]
	if len(g.Instances) != 1 || g.Instances[0].GI != 5 || g.Instances[0].Profile != "1g.10gb" || g.Instances[0].Counters[gpu.SMCyclesElapsed] == 0 {
		t.Errorf("instances %+v", g.Instances)
	}
	counts, err := n.Calls()
	if err != nil {
		t.Fatal(err)
	}
	if got := perGPU(counts)[1] + 1; got > 25+8 { // nvmlGpmMetricsGet names no GPU
		t.Errorf("%d calls", got)
	}
}

// perGPU sums the calls that name a GPU.
func perGPU(counts map[string]int) map[int]int {
	out := map[int]int{}
	for name, n := range counts {
		if _, g, ok := strings.Cut(name, " gpu="); ok {
			out[int(g[0]-'0')] += n
		}
	}
	return out
}

func TestCallsOfOneLook(t *testing.T) {
	n := newNode(t, "dgx-h100", "count_calls=true", "gpu.0.process.1=memory=1GiB,type=compute", "gpu.0.process.2=memory=1GiB,type=compute")
	readOnce(t, n) // fills the identity cache
	for _, args := range [][]string{nil, {"--counters-only"}} {
		if err := n.ResetCalls(); err != nil {
			t.Fatal(err)
		}
		readOnce(t, n, args...)
		counts, err := n.Calls()
		if err != nil {
			t.Fatal(err)
		}
		calls := perGPU(counts)
		for i := range 8 {
			if calls[i] == 0 || calls[i] > 25 {
				t.Errorf("%v: %d calls on GPU %d", args, calls[i], i)
			}
		}
		t.Logf("%v: %v; all: %d", args, calls, counts["nvmlGpmMetricsGet"]+counts["nvmlGpmSampleAlloc"])
	}
}

func TestReadOnlySomeGPUs(t *testing.T) {
	n := newNode(t, "dgx-h100")
	readOnce(t, n)
	a := readOnce(t, n, "--gpus", "GPU-98130bf5-7973-4cf2-abd5-9d8077ac4493", "--counters-only")
	if len(a.gpus) != 1 || a.gpus[3].Counters[gpu.EnergyMillijoules] == 0 || a.gpus[3].Readings[gpu.MemoryUsed] != 0 {
		t.Errorf("%+v", a.gpus)
	}
}

func TestReadTierZero(t *testing.T) {
	n := newNode(t, "dgx-h100", "count_calls=true")
	if err := n.Xid(3, 79, ""); err != nil {
		t.Fatal(err)
	}
	a := readOnce(t, n, "--tier", "0")
	if len(a.gpus) != 0 || len(a.presence.PCI) < 8 || len(a.presence.DeviceMinors) != 8 {
		t.Errorf("presence %+v", a.presence)
	}
	found := false
	for _, e := range a.kernel.Events {
		found = found || e.Code == 79 && e.UUID == "GPU-98130bf5-7973-4cf2-abd5-9d8077ac4493"
	}
	if !found {
		t.Errorf("events %+v", a.kernel.Events)
	}
	if counts, err := n.Calls(); err != nil || len(counts) != 0 {
		t.Errorf("calls %v, %v", counts, err)
	}
	if a = readOnce(t, n, "--tier", "0", "--after", "1000"); len(a.kernel.Events) != 0 {
		t.Errorf("events after the last record: %+v", a.kernel.Events)
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"--version"}, 0},
		{[]string{"read", "--tier", "7"}, 2},
		{[]string{"read", "--bogus"}, 2},
		{[]string{"sample", "--tick", "1ms"}, 2},
		{[]string{"read", "extra"}, 2},
	} {
		cmd := probe(t, c.args...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // the status is looked at
		if got := cmd.ProcessState.ExitCode(); got != c.code || out.Len() == 0 {
			t.Errorf("%v: status %d, output %q", c.args, got, out.String())
		}
	}
}

func TestInventory(t *testing.T) {
	n := newNode(t, "dgx-a100-mig")
	out, err := probe(t, "read", "--inventory", "--root", n.Root(), "--nvml", n.Library()).Output()
	if err != nil {
		t.Fatal(err)
	}
	var inv struct {
		GPUs []struct {
			UUID string
			MIG  []struct{ UUID string }
		}
	}
	if err := json.Unmarshal(out, &inv); err != nil || len(inv.GPUs) != 8 || len(inv.GPUs[1].MIG) == 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// A driver call that never returns: what came before is there.
func TestReadGoesWithItsReader(t *testing.T) {
	n := newNode(t, "dgx-h100", "gpu.3.call.nvmlDeviceGetFieldValues=hang")
	cmd := probe(t, "read", "--root", n.Root(), "--nvml", n.Library())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	seen := 0
	dec := json.NewDecoder(r)
	for seen < 7 {
		var l driver.Line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.GPU != nil && l.GPU.Complete {
			seen++
		}
	}
	r.Close()
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("stays although nobody reads")
	}
}
