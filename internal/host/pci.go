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

// PCIDevice is an NVIDIA GPU as sysfs shows it.
type PCIDevice struct {
	Address   string           // as NVML prints it
	Driver    string           // kernel driver bound; "" for none
	Speed     gpu.Opt[float64] // GT/s per lane now; idle cards lower it
	MaxSpeed  gpu.Opt[float64]
	Width     gpu.Opt[int] // lanes now
	MaxWidth  gpu.Opt[int]
	NUMANode  gpu.Opt[int]
	LocalCPUs string // CPU list, as the kernel writes it: 0-31,64-95
}

// PCI lists the NVIDIA display and 3D controllers on the bus, by address. A
// root without a PCI bus has none.
func (f FS) PCI() ([]PCIDevice, error) {
	entries, err := os.ReadDir(f.Path(pciDevices))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []PCIDevice
	for _, e := range entries {
		dir := filepath.Join(pciDevices, e.Name())
		if v, err := f.value(dir, "vendor"); err != nil || v != "0x10de" {
			continue
		}
		class, _ := f.value(dir, "class")
		if !strings.HasPrefix(class, "0x0300") && !strings.HasPrefix(class, "0x0302") {
			continue // an NVSwitch, an audio function, …
		}
		out = append(out, f.pciDevice(dir, e.Name()))
	}
	return out, nil
}

func (f FS) pciDevice(dir, name string) PCIDevice {
	get := func(file string) string {
		s, _ := f.value(dir, file)
		return s
	}
	d := PCIDevice{
		Address:   BusID(name),
		Speed:     parseLinkSpeed(get("current_link_speed")),
		MaxSpeed:  parseLinkSpeed(get("max_link_speed")),
		Width:     parseLinkWidth(get("current_link_width")),
		MaxWidth:  parseLinkWidth(get("max_link_width")),
		LocalCPUs: get("local_cpulist"),
	}
	if target, err := os.Readlink(f.Path(dir, "driver")); err == nil {
		d.Driver = filepath.Base(target)
	}
	if n, err := strconv.Atoi(get("numa_node")); err == nil && n >= 0 { // -1: the firmware does not say
		d.NUMANode = gpu.Some(n)
	}
	return d
}

// parseLinkSpeed reads "16.0 GT/s PCIe"; a card that does not answer shows
// "Unknown".
func parseLinkSpeed(s string) gpu.Opt[float64] {
	number, _, ok := strings.Cut(s, " GT/s")
	if !ok {
		return gpu.Opt[float64]{}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v <= 0 || v > 1000 {
		return gpu.Opt[float64]{}
	}
	return gpu.Some(v)
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

// AER is the PCI Express errors that a device reported since boot
// (aer_dev_correctable and its neighbours in sysfs).
type AER struct {
	Correctable, Nonfatal, Fatal gpu.Opt[uint64]
}

// AER reads a device's counters; address is in any form that BusID knows. What
// the kernel does not show is unset.
func (f FS) AER(address string) AER {
	total := func(file string) gpu.Opt[uint64] {
		b, err := f.read(smallFile, pciDevices, sysfsAddress(address), file)
		if err != nil {
			return gpu.Opt[uint64]{}
		}
		return parseAERTotal(b)
	}
	return AER{
		Correctable: total("aer_dev_correctable"),
		Nonfatal:    total("aer_dev_nonfatal"),
		Fatal:       total("aer_dev_fatal"),
	}
}

// parseAERTotal finds the line "TOTAL_ERR_COR 12" (or _NONFATAL, _FATAL).
func parseAERTotal(b []byte) gpu.Opt[uint64] {
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "TOTAL_ERR") {
			if n, err := strconv.ParseUint(value, 10, 64); err == nil {
				return gpu.Some(n)
			}
		}
	}
	return gpu.Opt[uint64]{}
}

// sysfsAddress turns an address into sysfs' form, 0000:3b:00.0.
func sysfsAddress(s string) string {
	id := strings.ToLower(BusID(s))
	if strings.HasPrefix(id, "0000") {
		return id[4:]
	}
	return id // domains above ffff keep their eight digits
}
