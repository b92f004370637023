package host

import (
	"strconv"
	"strings"
)

// MIGCap names a MIG capability: a GPU instance, or a compute instance in it.
type MIGCap struct {
	GPU int // minor of the GPU (/dev/nvidiaN), which is not NVML's index
	GI  int // GPU instance
	CI  int // compute instance; -1 for the GPU instance itself
}

// MIGMinors maps capabilities to the N of /dev/nvidia-caps/nvidia-capN.
type MIGMinors map[MIGCap]int

// MIGMinors reads /proc/driver/nvidia-caps/mig-minors. The driver lists every
// instance that could exist, not those that do.
func (f FS) MIGMinors() (MIGMinors, error) {
	b, err := f.read(1<<20, "proc/driver/nvidia-caps/mig-minors") // about 100 kB
	if err != nil {
		return nil, err
	}
	return parseMIGMinors(string(b)), nil
}

// Find returns the capability of a minor.
func (m MIGMinors) Find(minor int) (MIGCap, bool) {
	for c, n := range m {
		if n == minor {
			return c, true
		}
	}
	return MIGCap{}, false
}

// parseMIGMinors reads lines like "gpu0/gi1/access 12" and
// "gpu0/gi1/ci0/access 13"; "config 1" and the like are no instances.
func parseMIGMinors(s string) MIGMinors {
	out := MIGMinors{}
	for line := range strings.Lines(s) {
		path, number, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		minor, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		if c, ok := parseMIGCap(path); ok {
			out[c] = minor
		}
	}
	return out
}

func parseMIGCap(path string) (MIGCap, bool) {
	parts := strings.Split(path, "/")
	c := MIGCap{CI: -1}
	fields := []struct {
		prefix string
		to     *int
	}{{"gpu", &c.GPU}, {"gi", &c.GI}, {"ci", &c.CI}}
	if len(parts) < 3 || len(parts) > 4 || parts[len(parts)-1] != "access" {
		return c, false
	}
	for i, part := range parts[:len(parts)-1] {
		digits, ok := strings.CutPrefix(part, fields[i].prefix)
		n, err := strconv.ParseUint(digits, 10, 16)
		if !ok || err != nil {
			return c, false
		}
		*fields[i].to = int(n)
	}
	return c, true
}
