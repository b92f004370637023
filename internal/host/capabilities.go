package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
)

const capabilities = procNVIDIA + "/capabilities"

// Capabilities lists the MIG instances for which the driver wants a device
// below /dev/nvidia-caps: those that exist, unlike MIGMinors' table of all that
// could. None without MIG.
func (f FS) Capabilities() ([]gpu.MIGCap, error) {
	var out []gpu.MIGCap
	gpus, err := f.names(capabilities, "gpu")
	if err != nil {
		return nil, err
	}
	var errs []error
	add := func(gi string, c MIGCap) {
		b, err := f.read(smallFile, gi, "access")
		if minor, ok := parseCapability(string(b)); ok {
			out = append(out, gpu.MIGCap{GPU: c.GPU, GI: c.GI, CI: c.CI, Minor: minor})
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) { // destroyed while it was read
			errs = append(errs, err)
		}
	}
	for minor, dir := range gpus {
		instances, err := f.names(path.Join(dir, "mig"), "gi")
		errs = append(errs, err)
		for gi, dir := range instances {
			add(dir, MIGCap{minor, gi, -1})
			compute, err := f.names(dir, "ci")
			errs = append(errs, err)
			for ci, dir := range compute {
				add(dir, MIGCap{minor, gi, ci})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Minor < out[j].Minor })
	return out, errors.Join(errs...)
}

// names maps the numbers of the directories prefixN to their paths; a directory
// that is not there has none.
func (f FS) names(dir, prefix string) (map[int]string, error) {
	entries, err := os.ReadDir(f.Path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	for _, e := range entries {
		if digits, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if n, err := strconv.ParseUint(digits, 10, 16); err == nil {
				out[int(n)] = path.Join(dir, e.Name())
			}
		}
	}
	return out, nil
}

// parseCapability reads "DeviceFileMinor: 427".
func parseCapability(s string) (int, bool) {
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(line, "DeviceFileMinor:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 20)
			return int(n), err == nil
		}
	}
	return 0, false
}
