package host

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"gpuhooks/internal/gpu"
)

// node unpacks testdata/h100.txtar and adds what an archive cannot hold.
func node(t *testing.T) FS {
	t.Helper()
	a, err := txtar.ParseFile("testdata/h100.txtar")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := txtar.Write(a, root); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "sys/bus/pci/devices/0000:1b:00.0/driver")
	if err := os.Symlink("../../drivers/nvidia", link); err != nil {
		t.Fatal(err)
	}
	return NewFS(root)
}

func TestBusID(t *testing.T) {
	for in, want := range map[string]string{
		"0000:3b:00":           "00000000:3B:00.0",
		"PCI:0000:3b:00":       "00000000:3B:00.0",
		"0000:3b:00.0":         "00000000:3B:00.0",
		"00000000:3B:00.0":     "00000000:3B:00.0",
		"000d:00:1e.1":         "0000000D:00:1E.1",
		"10000:01:00.0":        "00010000:01:00.0", // VMD domains have five digits
		"18:00.0":              "00000000:18:00.0",
		"0001:00":              "00000000:01:00.0", // drivers before 2010: bus and device
		"":                     "",
		"...":                  "",
		"0000:3b":              "00000000:00:3B.0",
		"0100:00":              "",
		"0000:3b:00.8":         "",
		"0000:3b:00.00":        "",
		"0000:3b:00.":          "",
		"0000:xx:00.0":         "",
		"0000:3b:00:00":        "",
		"0000:-1:00":           "",
		"123456789:00:00":      "",
		"0000:3b:00.0; reboot": "",
	} {
		if got := BusID(in); got != want {
			t.Errorf("BusID(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestPCI(t *testing.T) {
	got, err := node(t).PCI()
	if err != nil {
		t.Fatal(err)
	}
	want := []gpu.PCIDevice{{Address: "00000000:1B:00.0", Driver: "nvidia"}, {Address: "00000000:43:00.0"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("PCI:\n got %+v\nwant %+v", got, want)
	}
}

func TestParseUevent(t *testing.T) {
	for in, want := range map[string]uevent{
		"DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SLOT_NAME=0000:1b:00.0\n": {true, "nvidia"},
		"PCI_CLASS=30000\nPCI_ID=10de:2684\n":                                            {true, ""},
		"DRIVER=vfio-pci\nPCI_CLASS=30200\nPCI_ID=10DE:2330":                             {true, "vfio-pci"},
		"DRIVER=nvidia-nvswitch\nPCI_CLASS=68000\nPCI_ID=10DE:22A3\n":                    {false, "nvidia-nvswitch"},
		"DRIVER=snd_hda_intel\nPCI_CLASS=40300\nPCI_ID=10DE:22BA\n":                      {false, "snd_hda_intel"},
		"DRIVER=i915\nPCI_CLASS=30000\nPCI_ID=8086:4680\n":                               {false, "i915"},
		"PCI_CLASS=3020\nPCI_ID=10DE:2330\n":                                             {},
		"":                                                                               {},
	} {
		if got := parseUevent(in); got != want {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

// A card that does not answer shows all bits set: nothing is known, not zero.
func TestLinkWidth(t *testing.T) {
	f := node(t)
	devices, err := f.PCI()
	if err != nil {
		t.Fatal(err)
	}
	got, faults := f.Links(devices)
	if len(faults) != 0 || got[0].Width != gpu.Some(16) || got[0].MaxWidth != gpu.Some(16) || got[1].Width.IsSet() || got[1].MaxWidth.IsSet() {
		t.Errorf("%+v, %+v", got, faults)
	}
}

func TestPresence(t *testing.T) {
	f := node(t)
	p := f.Presence()
	if p.DriverLoad == "" {
		t.Error("no identity of the driver's load")
	}
	p.DriverLoad = ""
	want := gpu.Presence{
		ModuleLoaded:  gpu.Some(true),
		ModuleVersion: gpu.Some("580.95.05"),
		Control:       gpu.Some(false),
		PCI: []gpu.PCIDevice{
			{Address: "00000000:1B:00.0", Driver: "nvidia"},
			{Address: "00000000:43:00.0"},
		},
		Proc: []gpu.ProcGPU{
			{Address: "00000000:1B:00.0", UUID: "GPU-11111111-2222-3333-4444-555555555555", Model: "NVIDIA H100 80GB HBM3", Minor: gpu.Some(1)},
			{Address: "00000000:43:00.0", Model: "NVIDIA H100 80GB HBM3", Minor: gpu.Some(0)},
		},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("Presence:\n got %+v\nwant %+v", p, want)
	}
}

func TestPresenceWithoutDriver(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := gpu.Presence{ModuleLoaded: gpu.Some(false), Control: gpu.Some(false)}
	if got := NewFS(root).Presence(); !reflect.DeepEqual(got, want) {
		t.Errorf("Presence = %+v, want %+v", got, want)
	}
}

func TestPresenceSaysWhatItCouldNotRead(t *testing.T) {
	f := node(t)
	if err := os.Remove(f.Path("proc/driver/nvidia/version")); err != nil {
		t.Fatal(err)
	}
	p := f.Presence()
	if p.ModuleVersion.IsSet() || len(p.Faults) != 1 || p.Faults[0].Call != "/proc/driver/nvidia/version" || p.Faults[0].Code != int(unix.ENOENT) {
		t.Errorf("version %v, faults %v; want no version and one fault", p.ModuleVersion, p.Faults)
	}
}

func TestDeviceMinors(t *testing.T) {
	f := node(t)
	for _, name := range []string{"nvidia0", "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm"} {
		if err := unix.Mknod(f.Path("dev", name), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Skipf("device nodes can only be made by root: %v", err)
		}
	}
	got, err := f.DeviceMinors()
	if want := []int{0, 2, 10}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("DeviceMinors = %v, %v; want %v", got, err, want)
	}
	if on, err := f.HasDevice("nvidiactl"); !on || err != nil {
		t.Errorf("HasDevice(nvidiactl) = %v, %v", on, err)
	}
	if caps, err := f.CapabilityMinors(); caps != nil || err != nil {
		t.Errorf("CapabilityMinors without MIG = %v, %v", caps, err)
	}
}

func TestDriverLoadChangesWithTheDirectory(t *testing.T) {
	f := node(t)
	before := f.DriverLoad()
	if again := f.DriverLoad(); again != before {
		t.Errorf("two looks at one load: %q and %q", before, again)
	}
	dir := f.Path("sys/module/nvidia")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := f.DriverLoad(); got != "" {
		t.Errorf("without a module: %q", got)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if after := f.DriverLoad(); after == before || after == "" {
		t.Errorf("a second load is %q like the first", after)
	}
}

func TestDriverVersion(t *testing.T) {
	for in, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023": "535.129.03",
		"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  595.45  Release Build (x)":      "595.45",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module":                                           "",
		"GCC version: gcc version 12.2.0":                                                          "",
	} {
		if got, ok := parseDriverVersion(in); got != want || ok != (want != "") {
			t.Errorf("parseDriverVersion(%q) = %q, %v; want %q", in, got, ok, want)
		}
	}
}

func TestMIGMinors(t *testing.T) {
	got, err := node(t).MIGMinors()
	want := MIGMinors{{0, 0, -1}: 3, {0, 1, -1}: 12, {0, 1, 0}: 13, {7, 14, 7}: 1082}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("MIGMinors = %v, %v; want %v", got, err, want)
	}
	if c, ok := got.Find(13); !ok || c != (MIGCap{GPU: 0, GI: 1, CI: 0}) {
		t.Errorf("Find(13) = %v, %v", c, ok)
	}
	if c, ok := got.Find(4323); ok {
		t.Errorf("Find(4323) = %v: the IMEX capability is no instance", c)
	}
}
