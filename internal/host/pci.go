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
		if v, err := f.value(dir, "vendor"); err != nil || v != "0x10de" {
			continue
		}
		class, _ := f.value(dir, "class")
		if !strings.HasPrefix(class, "0x0300") && !strings.HasPrefix(class, "0x0302") {
			continue // an NVSwitch, an audio function, …
		}
		if _, err := os.Lstat(f.Path(dir, "physfn")); err == nil {
			continue // a part of a card that its host gives to virtual machines
		}
		out = append(out, f.pciDevice(dir, e.Name()))
	}
	return out, nil
}

func (f FS) pciDevice(dir, name string) gpu.PCIDevice {
	lanes := func(file string) gpu.Opt[int] {
		s, _ := f.value(dir, file)
		return parseLinkWidth(s)
	}
	d := gpu.PCIDevice{Address: BusID(name), Width: lanes("current_link_width"), MaxWidth: lanes("max_link_width")}
	if target, err := os.Readlink(f.Path(dir, "driver")); err == nil {
		d.Driver = filepath.Base(target)
	}
	return d
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
