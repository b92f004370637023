package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
)

const pciDevices = "sys/bus/pci/devices"

// PCI lists the NVIDIA display and 3D controllers on the bus, by address. A
// root without a PCI bus has none.
func (f FS) PCI() ([]gpu.PCIDevice, error) {
	entries, err := os.ReadDir(f.Path(pciDevices))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []gpu.PCIDevice
	for _, e := range entries {
		dir := filepath.Join(pciDevices, e.Name())
		b, err := f.read(smallFile, dir, "uevent")
		if err != nil {
			continue // it has just gone
		}
		u := parseUevent(string(b))
		if !u.gpu {
			continue // an NVSwitch, an audio function, another vendor's, …
		}
		if _, err := os.Lstat(f.Path(dir, "physfn")); err == nil {
			continue // a part of a card that its host gives to virtual machines
		}
		out = append(out, gpu.PCIDevice{Address: BusID(e.Name()), Driver: u.driver})
	}
	return out, nil
}

// uevent is what one file tells of a PCI device: a prolog reads it of each.
type uevent struct {
	gpu    bool   // an NVIDIA display or 3D controller
	driver string // the kernel driver that is bound to it; "" when none is
}

func parseUevent(s string) uevent {
	var u uevent
	var nvidia, display bool
	for line := range strings.Lines(s) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "DRIVER":
			u.driver = value
		case "PCI_ID": // 10DE:2330
			nvidia = strings.HasPrefix(strings.ToUpper(value), "10DE:")
		case "PCI_CLASS": // 30200, of which the last two digits are the interface
			display = len(value) == 5 && (strings.HasPrefix(value, "300") || strings.HasPrefix(value, "302"))
		}
	}
	u.gpu = nvidia && display
	return u
}

// parseLinkWidth reads a number of lanes. A card that does not answer shows 63
// or 255, the register's bits all ones.
func parseLinkWidth(s string) gpu.Opt[int] {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 32 {
		return gpu.Opt[int]{}
	}
	return gpu.Some(n)
}
