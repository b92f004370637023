package sim_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gpuhooks/internal/sim"
)

func TestRootMatchesTheScenario(t *testing.T) {
	n, err := sim.NewNode(t.TempDir(), "dgx-a100-mig")
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(n.Root(), path))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	for path, want := range map[string]string{
		"proc/driver/nvidia/version":                              "580.95.05",
		"proc/driver/nvidia/gpus/0000:07:00.0/information":        "Device Minor: \t 3\n",
		"proc/driver/nvidia-caps/mig-minors":                      "gpu3/gi2/access 426\ngpu3/gi2/ci0/access 427\n", // by the minor, not the index
		"proc/driver/nvidia/capabilities/gpu3/mig/gi2/ci0/access": "DeviceFileMinor: 427\n",
		"proc/devices": "nvidia-caps\n",
		"sys/bus/pci/devices/0000:07:00.0/vendor":             "0x10de\n",
		"sys/bus/pci/devices/0000:07:00.0/device":             "0x20b0\n",
		"sys/bus/pci/devices/0000:07:00.0/class":              "0x030200\n",
		"sys/bus/pci/devices/0000:07:00.0/max_link_speed":     "16.0 GT/s PCIe\n",
		"sys/bus/pci/devices/0000:07:00.0/current_link_width": "16\n",
		"sys/bus/pci/devices/0000:07:00.0/numa_node":          "3\n",
		"sys/bus/pci/devices/0000:07:00.0/local_cpulist":      "0\n",
		"sys/module/nvidia/version":                           "580.95.05\n",
		"proc/uptime":                                         ".",
		"proc/sys/kernel/random/boot_id":                      "-",
	} {
		if got := read(path); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", path, got, want)
		}
	}
	driver, err := os.Readlink(filepath.Join(n.Root(), "sys/bus/pci/devices/0000:07:00.0/driver"))
	if err != nil || filepath.Base(driver) != "nvidia" {
		t.Errorf("driver is %q, %v", driver, err)
	}
	for _, path := range []string{"dev/nvidia0", "dev/nvidia7", "dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-caps/nvidia-cap427"} {
		info, err := os.Stat(filepath.Join(n.Root(), path))
		if err != nil {
			t.Error(err)
		} else if os.Getuid() == 0 && info.Mode()&os.ModeCharDevice == 0 {
			t.Errorf("%s is no character device but %s", path, info.Mode())
		}
	}

	if err := n.Set("driver.loaded=false", "gpu.0.device_node=false", "gpu.1.pci.driver=vfio-pci"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"proc/driver/nvidia", "sys/module/nvidia", "dev/nvidia3", "sys/bus/pci/devices/0000:07:00.0/driver"} {
		if _, err := os.Lstat(filepath.Join(n.Root(), path)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if driver, _ := os.Readlink(filepath.Join(n.Root(), "sys/bus/pci/devices/0000:0f:00.0/driver")); filepath.Base(driver) != "vfio-pci" {
		t.Errorf("the driver of GPU 1 is %q", driver)
	}
	if err := n.Unset("driver.loaded", "gpu.0.device_node"); err != nil {
		t.Fatal(err)
	}
	read("proc/driver/nvidia/version")
	read("dev/nvidia3")
}

// The bus is laid out as the kernel does it: the directory of a card lies in
// that of the port above it, and a card that is asleep shows a slower link.
func TestBus(t *testing.T) {
	n, err := sim.NewNode(t.TempDir(), "l40s-idle")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Set("gpu.0.aer.correctable=7", "gpu.0.slot.aer.fatal=2", "gpu.1.aer=none", "gpu.2.pcie.slot=none",
		"gpu.3.pcie.slot=0000:c0:03.1", "gpu.3.pcie.slot.gen=3", "gpu.3.pcie.slot.width=8"); err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		b, err := os.ReadFile(filepath.Join(n.Root(), "sys/bus/pci/devices", path))
		if err != nil {
			return "none"
		}
		return string(b)
	}
	for device, want := range map[string]string{
		"0000:01:00.0": "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0",
		"0000:00:01.0": "../../../devices/pci0000:00/0000:00:01.0",
		"0000:81:00.0": "../../../devices/pci0000:80/0000:81:00.0",
		"0000:c1:00.0": "../../../devices/pci0000:c0/0000:c0:03.1/0000:c1:00.0",
	} {
		if got, err := os.Readlink(filepath.Join(n.Root(), "sys/bus/pci/devices", device)); got != want {
			t.Errorf("%s leads to %q, want %q: %v", device, got, want, err)
		}
	}
	for path, want := range map[string]string{
		"0000:01:00.0/current_link_speed":  "2.5 GT/s PCIe\n",
		"0000:01:00.0/max_link_speed":      "16.0 GT/s PCIe\n",
		"0000:00:01.0/max_link_speed":      "16.0 GT/s PCIe\n",
		"0000:00:01.0/class":               "0x060400\n",
		"0000:c0:03.1/max_link_speed":      "8.0 GT/s PCIe\n",
		"0000:c0:03.1/max_link_width":      "8\n",
		"0000:01:00.0/aer_dev_correctable": "TOTAL_ERR_COR 7\n",
		"0000:01:00.0/aer_dev_fatal":       "TOTAL_ERR_FATAL 0\n",
		"0000:00:01.0/aer_dev_fatal":       "TOTAL_ERR_FATAL 2\n",
		"0000:00:01.0/aer_dev_nonfatal":    "TOTAL_ERR_NONFATAL 0\n",
		"0000:41:00.0/aer_dev_correctable": "none",
		"0000:40:01.0/aer_dev_correctable": "none",
	} {
		if got := read(path); !strings.HasSuffix(got, want) {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if err := n.Set("gpu.0.absent=true"); err != nil {
		t.Fatal(err)
	}
	if read("0000:01:00.0/vendor") != "none" || read("0000:00:01.0/vendor") != "0x8086\n" {
		t.Error("the port goes with its card, or the card stays")
	}
}

// The devices of MIG instances can be missing, as before nvidia-modprobe ran.
func TestCapabilityDevicesCanBeMissing(t *testing.T) {
	n, err := sim.NewNode(t.TempDir(), "dgx-a100-mig")
	if err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(n.Root(), "dev/nvidia-caps/nvidia-cap427")
	for _, want := range []bool{true, false, true} {
		if err := n.Set("gpu.0.mig.device_nodes=" + map[bool]string{true: "true", false: "false"}[want]); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(node); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", node, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(n.Root(), "proc/driver/nvidia/capabilities/gpu3/mig/gi2/ci0/access")); err != nil {
		t.Error(err)
	}
}

func TestKernelLog(t *testing.T) {
	n, err := sim.NewNode(t.TempDir(), "dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{n.KernelLog("eth0: link up"), n.Xid(3, 79, ""), n.Xid(0, 13, "a text, with a comma"),
		n.Set("gpu.0.recovery=2"), n.Xid(0, 154, "")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(n.Root(), "dev/kmsg"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^3,0,\d+,-;eth0: link up
3,1,\d+,-;NVRM: GPU at PCI:0000:61:00: GPU-[0-9a-f-]{36}
3,2,\d+,-;NVRM: Xid \(PCI:0000:61:00\): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus\.
3,3,\d+,-;NVRM: GPU 0000:61:00\.0: GPU has fallen off the bus\.
3,4,\d+,-;NVRM: GPU at PCI:0000:1b:00: GPU-[0-9a-f-]{36}
3,5,\d+,-;NVRM: Xid \(PCI:0000:1b:00\): 13, pid='<unknown>', name=<unknown>, a text, with a comma
3,6,\d+,-;NVRM: GPU at PCI:0000:1b:00: GPU-[0-9a-f-]{36}
3,7,\d+,-;NVRM: Xid \(PCI:0000:1b:00\): 154, pid='<unknown>', name=<unknown>, GPU recovery action changed from 0x0 \(None\) to 0x2 \(Node Reboot Required\)
$`)
	if !want.Match(log) {
		t.Errorf("kernel log:\n%s", log)
	}
}
