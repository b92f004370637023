package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
)

// Links adds to what PCI listed the width and generation of each card's link, the port
// above the card, and the errors that both have counted: some hundred small
// files on a node of eight cards. What a device does not have stays unset.
func (f FS) Links(devices []gpu.PCIDevice) (out []gpu.PCIDevice, faults []gpu.Fault) {
	for _, d := range devices {
		dir := filepath.Join(pciDevices, sysfsName(d.Address))
		d.Gen, d.MaxGen = f.speed(dir, "current_link_speed"), f.speed(dir, "max_link_speed")
		d.Width, d.MaxWidth = f.lanes(dir, "current_link_width"), f.lanes(dir, "max_link_width")
		var err error
		if d.AER, err = f.aer(dir); err != nil {
			faults = append(faults, PathFault("/"+dir, err))
		}
		if port := f.portAbove(dir); port != "" {
			slot, err := f.slot(port)
			if err != nil {
				faults = append(faults, PathFault("/"+filepath.Join(pciDevices, port), err))
			}
			d.Slot = gpu.Some(slot)
		}
		out = append(out, d)
	}
	return out, faults
}

// sysfsName writes an address as sysfs does: 0000:1b:00.0.
func sysfsName(busID string) string {
	domain, rest, _ := strings.Cut(strings.ToLower(busID), ":")
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest
}

// portAbove is the port that a device hangs on: each entry of
// /sys/bus/pci/devices is a link into the tree of the bus, and the directory
// around the device there is its port's. "" for a device on a root bus.
func (f FS) portAbove(dir string) string {
	target, err := os.Readlink(f.Path(dir))
	if err != nil {
		return ""
	}
	parent := path.Base(path.Dir(target))
	if strings.Count(parent, ":") != 2 || BusID(parent) == "" { // pci0000:15
		return ""
	}
	return parent
}

func (f FS) slot(port string) (gpu.PCISlot, error) {
	dir := filepath.Join(pciDevices, port)
	s := gpu.PCISlot{Address: BusID(port), MaxGen: f.speed(dir, "max_link_speed"), MaxWidth: f.lanes(dir, "max_link_width")}
	var err error
	s.AER, err = f.aer(dir)
	return s, err
}

func (f FS) lanes(dir, file string) gpu.Opt[int] {
	s, _ := f.value(dir, file)
	return parseLinkWidth(s)
}

func (f FS) speed(dir, file string) gpu.Opt[int] {
	s, _ := f.value(dir, file)
	return parseLinkSpeed(s)
}

// parseLinkSpeed makes a generation of "32.0 GT/s PCIe"; "Unknown" is none.
func parseLinkSpeed(s string) gpu.Opt[int] {
	number, _, ok := strings.Cut(s, " GT/s")
	rate, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return gpu.Opt[int]{}
	}
	for i, g := range []float64{2.5, 5, 8, 16, 32, 64, 128} {
		if rate == g {
			return gpu.Some(i + 1)
		}
	}
	return gpu.Opt[int]{}
}

// aer reads how many errors a device has reported since boot. Without Advanced
// Error Reporting (or where the firmware keeps it to itself) there are no files.
func (f FS) aer(dir string) (gpu.Counters, error) {
	out := gpu.Counters{}
	for _, a := range []struct {
		file, total string
		counter     gpu.Counter
	}{
		{"aer_dev_correctable", "TOTAL_ERR_COR", gpu.AERCorrectable},
		{"aer_dev_nonfatal", "TOTAL_ERR_NONFATAL", gpu.AERNonFatal},
		{"aer_dev_fatal", "TOTAL_ERR_FATAL", gpu.AERFatal},
	} {
		b, err := f.read(smallFile, dir, a.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n, ok := parseAER(string(b), a.total); ok {
			out[a.counter] = n
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// parseAER finds the total under the single kinds of errors.
func parseAER(s, total string) (uint64, bool) {
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(line, total+" "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
