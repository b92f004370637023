package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/gpu"
)

const procNVIDIA = "proc/driver/nvidia"

// DriverVersion returns the version of the loaded kernel driver, "580.95.05",
// from /proc/driver/nvidia/version.
func (f FS) DriverVersion() (string, error) {
	b, err := f.read(smallFile, procNVIDIA, "version")
	if err != nil {
		return "", err
	}
	v, ok := parseDriverVersion(string(b))
	if !ok {
		return "", fmt.Errorf("%s: no version in it", f.Path(procNVIDIA, "version"))
	}
	return v, nil
}

// parseDriverVersion finds the first word of digits and dots behind "Kernel
// Module": closed and open modules put different words between.
func parseDriverVersion(s string) (string, bool) {
	_, rest, ok := strings.Cut(s, "Kernel Module")
	if !ok {
		return "", false
	}
	line, _, _ := strings.Cut(rest, "\n")
	for _, w := range strings.Fields(line) {
		if w[0] >= '0' && w[0] <= '9' && strings.Contains(w, ".") && strings.Trim(w, "0123456789.") == "" {
			return w, true
		}
	}
	return "", false
}

// ProcGPUs lists what the driver shows in /proc/driver/nvidia/gpus, by address.
// Without a driver there is none.
func (f FS) ProcGPUs() ([]gpu.ProcGPU, error) {
	entries, err := os.ReadDir(f.Path(procNVIDIA, "gpus"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []gpu.ProcGPU
	var errs []error
	for _, e := range entries {
		b, err := f.read(smallFile, procNVIDIA, "gpus", e.Name(), "information")
		if err != nil {
			errs = append(errs, err)
		}
		g := parseInformation(string(b))
		g.Address = cmp.Or(BusID(e.Name()), e.Name())
		out = append(out, g)
	}
	return out, errors.Join(errs...)
}

// parseInformation reads the "Key: value" lines. The driver prints question
// marks for the UUID of a card that it could not start.
func parseInformation(s string) gpu.ProcGPU {
	var g gpu.ProcGPU
	for line := range strings.Lines(s) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			g.Model = value
		case "GPU UUID":
			if !strings.Contains(value, "?") {
				g.UUID = value
			}
		case "Device Minor":
			if n, err := strconv.Atoi(value); err == nil {
				g.Minor = gpu.Some(n)
			}
		}
	}
	return g
}

// ModuleLoaded says whether the kernel module nvidia is there and started
// (/sys/module/nvidia/initstate; absent where it is built in or simulated).
func (f FS) ModuleLoaded() (bool, error) {
	if _, err := os.Stat(f.Path("sys/module/nvidia")); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	state, err := f.value("sys/module/nvidia/initstate")
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return state == "live", err
}

// DriverLoad names this load of the kernel module within this boot: another
// name means that the driver was loaded again. "" without a module.
//
// In sysfs it is the inode number, which counts up with every directory made.
// (Times do not serve: sysfs gives a directory the time when somebody first
// looked at it.) A simulated root reuses numbers, so there the directory's
// change time counts too.
func (f FS) DriverLoad() string {
	path := f.Path("sys/module/nvidia")
	var st unix.Stat_t
	var fsinfo unix.Statfs_t
	if unix.Stat(path, &st) != nil || unix.Statfs(path, &fsinfo) != nil {
		return ""
	}
	if fsinfo.Type == unix.SYSFS_MAGIC {
		return strconv.FormatUint(st.Ino, 10)
	}
	return fmt.Sprintf("%d.%d", st.Ino, st.Ctim.Nano())
}

// DeviceMinors lists the N of the /dev/nvidiaN that are character devices,
// ascending.
func (f FS) DeviceMinors() ([]int, error) {
	return f.numberedDevices("dev", "nvidia")
}

// CapabilityMinors lists the N of /dev/nvidia-caps/nvidia-capN, ascending: what
// gives access to MIG instances. None without MIG.
func (f FS) CapabilityMinors() ([]int, error) {
	out, err := f.numberedDevices("dev/nvidia-caps", "nvidia-cap")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return out, err
}

// HasDevice says whether a name below /dev (nvidiactl, nvidia-uvm) is a
// character device.
func (f FS) HasDevice(name string) (bool, error) {
	st, err := os.Stat(f.Path("dev", name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return st.Mode()&os.ModeCharDevice != 0, nil
}

// numberedDevices finds character devices named prefix and a number. A node's
// own /dev is named by the driver, so names alone would do, but a plain file in
// place of a lost node is a fault that occurs.
func (f FS) numberedDevices(dir, prefix string) ([]int, error) {
	entries, err := os.ReadDir(f.Path(dir))
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 20)
		if err != nil {
			continue // nvidiactl, nvidia-uvm, nvidia-caps
		}
		if st, err := os.Stat(f.Path(dir, e.Name())); err == nil && st.Mode()&os.ModeCharDevice != 0 {
			out = append(out, int(n))
		}
	}
	slices.Sort(out)
	return out, nil
}
