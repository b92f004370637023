package host

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"gpuhooks/internal/gpu"
)

// surrounded unpacks testdata/surroundings.txtar and adds its links.
func surrounded(t *testing.T) FS {
	t.Helper()
	a, err := txtar.ParseFile("testdata/surroundings.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := txtar.Write(a, root); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"sys/bus/pci/devices/0000:15:01.0": "../../../devices/pci0000:15/0000:15:01.0",
		"sys/bus/pci/devices/0000:16:00.0": "../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0",
		"sys/bus/pci/devices/0000:80:02.0": "../../../devices/pci0000:80/0000:80:02.0",
		"sim/proc/700/exe":                 "/usr/bin/nvidia-persistenced (deleted)",
		"sim/proc/702/exe":                 "/home/somebody/a.out",
	} {
		link = filepath.Join(root, link)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	return NewFS(root)
}

func soon() time.Time { return time.Now().Add(10 * time.Second) }

func TestSurroundings(t *testing.T) {
	f := surrounded(t)
	spool := filepath.Join(t.TempDir(), "not", "made", "yet")
	got := f.Surroundings([]string{spool, f.Path("sim/proc/1/stat")}, soon())
	for i := range got.Dirs {
		got.Dirs[i].Free = gpu.Opt[uint64]{}
	}
	want := gpu.Host{
		// The reader of NFS waits elsewhere, dd waits for its disk.
		Stuck: []gpu.Stuck{
			{PID: 2000, TID: 2001, Name: "cuda-EvtHandlr", Where: "os_acquire_mutex [nvidia]", Start: gpu.Some[uint64](123456), Job: "77", Switches: gpu.Some[uint64](42)},
			{PID: 300, TID: 300, Name: "nv_queue", Where: "the driver's own thread", Start: gpu.Some[uint64](400)},
		},
		Daemons:    []string{"nvidia-persistenced"}, // one is a zombie, one another program of that name
		NVSwitches: 1,
		GPUDirect:  gpu.Some(gpu.GPUDirect{Peermem: true, DMABuf: true}),
		Ports: []gpu.Port{
			{Device: "mlx5_0", Port: 1, State: "active", Physical: "linkup", Layer: "infiniband", Rate: gpu.Some(400.0),
				Counters: gpu.Counters{"link_downed": 2, "symbol_error": 65535}},
			{Device: "mlx5_1", Port: 1, State: "down", Physical: "disabled", Layer: "ethernet", Rate: gpu.Some(10.0)},
		},
		Clock: gpu.Some(gpu.Clock{Synchronised: true, MaxError: 0.0005}),
		Dirs:  []gpu.Dir{{Path: spool, Writable: true}, {Path: f.Path("sim/proc/1/stat"), Why: f.Path("sim/proc/1/stat") + " is no directory"}},
	}
	if len(got.Stuck) == 2 && got.Stuck[0].PID == 300 { // /proc has no order
		got.Stuck[0], got.Stuck[1] = got.Stuck[1], got.Stuck[0]
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCapabilitiesAndLinks(t *testing.T) {
	f := surrounded(t)
	caps, err := f.Capabilities()
	if want := []gpu.MIGCap{{GPU: 3, GI: 2, CI: -1, Minor: 426}, {GPU: 3, GI: 2, CI: 0, Minor: 427}}; err != nil || !reflect.DeepEqual(caps, want) {
		t.Errorf("capabilities %+v, %v", caps, err)
	}
	got, faults := f.Links([]gpu.PCIDevice{{Address: "00000000:16:00.0"}, {Address: "00000000:80:02.0"}})
	want := []gpu.PCIDevice{{
		Address: "00000000:16:00.0", Gen: gpu.Some(1), MaxGen: gpu.Some(5),
		AER: gpu.Counters{gpu.AERCorrectable: 3, gpu.AERNonFatal: 1, gpu.AERFatal: 0},
		Slot: gpu.Some(gpu.PCISlot{Address: "00000000:15:01.0", MaxGen: gpu.Some(4), MaxWidth: gpu.Some(16),
			AER: gpu.Counters{gpu.AERCorrectable: 5}}),
	}, {Address: "00000000:80:02.0"}}
	if len(faults) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("links %+v, %v", got, faults)
	}
	if caps, err := NewFS(t.TempDir()).Capabilities(); caps != nil || err != nil {
		t.Errorf("a node without MIG has %v, %v", caps, err)
	}
}

// What is missing altogether is none, and no fault.
func TestSurroundingsOfNothing(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := NewFS(root).Surroundings(nil, soon()); !reflect.DeepEqual(got, gpu.Host{}) {
		t.Errorf("got %+v", got)
	}
}

// A part that hangs costs its own answer only, and a panic as well.
func TestGatherGivesUp(t *testing.T) {
	hang := make(chan bool)
	defer close(hang)
	got := gather([]part{
		{"a hung mount", func(*gpu.Host) { <-hang }},
		{"clock", func(h *gpu.Host) { h.Clock = gpu.Some(gpu.Clock{Synchronised: true}) }},
		{"broken", func(*gpu.Host) { panic("no") }},
	}, time.Now())
	want := gpu.Host{Clock: gpu.Some(gpu.Clock{Synchronised: true}), Faults: []gpu.Fault{
		{Call: "a hung mount", Kind: gpu.FaultTimeout, Text: "no answer in time"},
		{Call: "broken", Kind: gpu.FaultOther, Text: "panic: no"},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// A node of many processes is looked through in the time that there is.
func TestThreadsAreBounded(t *testing.T) {
	root := t.TempDir()
	for pid := 1; pid <= 200; pid++ {
		dir := filepath.Join(root, "sim", "proc", fmt.Sprint(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stat"), fmt.Appendf(nil, "%d (a) S 1 1 1 0 -1 1 1 0 0 0 1 1 0 0 20 0 1 0 900 1 1", pid), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if _, _, faults := NewFS(root).Threads(soon()); len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
	t.Logf("200 processes took %v", time.Since(began))
	_, _, faults := NewFS(root).Threads(time.Now())
	if len(faults) != 1 || faults[0].Kind != gpu.FaultTimeout || faults[0].Text != "looked at 0 of 200 processes" {
		t.Errorf("faults: %v", faults)
	}
}

// The machine's own /proc can be looked through.
func TestThreadsOfThisMachine(t *testing.T) {
	stuck, daemons, faults := NewFS("/").Threads(soon())
	t.Logf("stuck %v, daemons %v, faults %v", stuck, daemons, faults)
	for _, f := range faults {
		if f.Kind != gpu.FaultPermission {
			t.Error(f)
		}
	}
}

func TestDriverFrame(t *testing.T) {
	for in, want := range map[string]string{
		"[<0>] a+0x1/0x2\n[<0>] uvm_va_space_mm_shutdown+0x5/0x10 [nvidia_uvm]\n": "uvm_va_space_mm_shutdown [nvidia_uvm]",
		"[<ffffffffc0a1b2c3>] nv_drm_x+0x5/0x10 [nvidia_drm]\n":                   "nv_drm_x [nvidia_drm]",
		"[<0>] nfs_file_read+0x6f/0xa0 [nfs]\n":                                   "",
		"[<0>] x+0x1/0x2 [nvidiafb]\n":                                            "",
		"":                                                                        "",
		"] [":                                                                     "",
	} {
		if got := driverFrame(in); got != want {
			t.Errorf("driverFrame(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseThread(t *testing.T) {
	for in, want := range map[string]string{
		"9 (a b) c) D 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19": "a b) c|D|17",
		"9 () S":   "|S|0",
		"9 (a":     "none",
		"9 (a) ":   "none",
		"":         "none",
		"9 )a( D ": "none",
	} {
		got := "none"
		if s, ok := parseThread([]byte(in)); ok {
			got = fmt.Sprintf("%s|%c|%d", s.comm, s.state, s.threads)
		}
		if got != want {
			t.Errorf("parseThread(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestParsersOfSurroundings(t *testing.T) {
	for in, want := range map[string]int{"2.5 GT/s PCIe": 1, "8 GT/s": 3, "64.0 GT/s PCIe": 6, "Unknown": 0, "": 0, "7 GT/s": 0} {
		if got := parseLinkSpeed(in); got.Or(0) != want {
			t.Errorf("parseLinkSpeed(%q) = %v", in, got)
		}
	}
	for in, want := range map[string]bool{"5.12.0": true, "5.11.9": false, "6.1-rc": true, "4.18.0-553.el8": false, "5.15rc1-x.0": false, "x": false, "10.0": true} {
		if got := kernelAtLeast(in, 5, 12); got != want {
			t.Errorf("kernelAtLeast(%q) = %v", in, got)
		}
	}
	for in, want := range map[string]float64{"400 Gb/sec (4X NDR)": 400, "2.5 Gb/sec (1X SDR)": 2.5, "": 0, "-1 Gb/sec": 0, "NaN Gb/sec": 0} {
		if got := parsePortRate(in); got.Or(0) != want {
			t.Errorf("parsePortRate(%q) = %v", in, got)
		}
	}
	if openModule("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26\nGCC: Open Kernel Module\n") {
		t.Error("the closed module is taken for the open one")
	}
	for _, c := range []struct {
		state  int
		status int32
		max    int64
		want   gpu.Clock
	}{
		{0, 0x2001, 500, gpu.Clock{Synchronised: true, MaxError: 0.0005}},
		{5, 0x40, 16000000, gpu.Clock{MaxError: 16}},
		{0, 0x40, 2000, gpu.Clock{MaxError: 0.002}},
	} {
		if got := clockOf(c.state, c.status, c.max); got != c.want {
			t.Errorf("clockOf(%d, %#x, %d) = %+v", c.state, c.status, c.max, got)
		}
	}
	if _, err := parseClock("fine"); err == nil {
		t.Error("a broken simulated clock is accepted")
	}
	if c, err := NewFS("/").Clock(); err != nil || !c.IsSet() {
		t.Errorf("the machine's clock: %+v, %v", c, err)
	}
}

// A port whose counters refuse is still a port, and the others are read.
func TestPortThatRefuses(t *testing.T) {
	f := surrounded(t)
	link := f.Path("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(link, 0o755); err != nil { // reading it fails with EISDIR, as EINVAL elsewhere
		t.Fatal(err)
	}
	ports, faults := f.Ports(soon())
	if len(ports) != 2 || ports[0].State != "active" || ports[0].Counters != nil || ports[1].Device != "mlx5_1" {
		t.Errorf("ports %+v", ports)
	}
	if len(faults) != 1 || faults[0].Call != "/sys/class/infiniband/mlx5_0/ports/1" || !strings.Contains(faults[0].Text, "is a directory") {
		t.Errorf("faults %+v", faults)
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	d := Directory(dir)
	if free, ok := d.Free.Get(); !d.Writable || d.Why != "" || !ok || free == 0 {
		t.Errorf("got %+v", d)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("it left %v behind", left)
	}
	if d := Directory("/proc/self"); d.Writable || d.Why == "" {
		t.Errorf("/proc is writable: %+v", d)
	}
}
