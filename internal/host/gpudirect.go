package host

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
)

// GPUDirect says by what a network card could reach the memory of a GPU: the
// module nvidia_peermem (before it nv_peer_mem), or dma-buf, which needs the
// open kernel module and Linux 5.12. Unset without a driver.
func (f FS) GPUDirect() (gpu.Opt[gpu.GPUDirect], error) {
	var none gpu.Opt[gpu.GPUDirect]
	version, err := f.read(smallFile, procNVIDIA, "version")
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	var d gpu.GPUDirect
	for _, module := range []string{"nvidia_peermem", "nv_peer_mem"} {
		_, err := os.Stat(f.Path("sys/module", module))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return none, err
		}
		d.Peermem = d.Peermem || err == nil
	}
	release, err := f.kernelRelease()
	if err != nil {
		return none, err
	}
	d.DMABuf = openModule(string(version)) && kernelAtLeast(release, 5, 12)
	return gpu.Some(d), nil
}

// kernelRelease is the kernel's version; a simulated root without one runs on
// the machine's kernel.
func (f FS) kernelRelease() (string, error) {
	const path = "proc/sys/kernel/osrelease"
	r, err := f.value(path)
	if errors.Is(err, fs.ErrNotExist) && f != "/" {
		return FS("/").value(path)
	}
	return r, err
}

// openModule says whether the text of /proc/driver/nvidia/version is that of
// the open kernel module.
func openModule(version string) bool {
	line, _, _ := strings.Cut(version, "\n")
	return strings.Contains(line, "Open Kernel Module")
}

// kernelAtLeast compares "5.15.0-91-generic" with a version.
func kernelAtLeast(release string, major, minor int) bool {
	have := strings.SplitN(release, ".", 3)
	if len(have) < 2 {
		return false
	}
	a, err := strconv.Atoi(have[0])
	b, err2 := strconv.Atoi(strings.TrimRightFunc(have[1], func(r rune) bool { return r < '0' || r > '9' }))
	return err == nil && err2 == nil && (a > major || a == major && b >= minor)
}
