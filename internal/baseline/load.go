package baseline

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"gpuhooks/internal/config"
)

// Load reads a baseline file: root's own, without unknown keys. An error names
// file, line and key. A missing file is an error that is fs.ErrNotExist.
func Load(path string) (Baseline, error) {
	var b Baseline
	if err := config.Decode(path, &b); err != nil {
		return Baseline{}, err
	}
	if err := b.validate(); err != nil {
		return Baseline{}, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// LoadIf is Load where the site may have none: a missing file, or "", expects
// nothing.
func LoadIf(path string) (Baseline, error) {
	if path == "" {
		return Baseline{}, nil
	}
	b, err := Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Baseline{}, nil
	}
	return b, err
}

// validate reports what cannot be meant.
func (b Baseline) validate() error {
	if b.Schema != Schema {
		return fmt.Errorf("schema: %q is not %q", b.Schema, Schema)
	}
	var errs []error
	oneOf := func(key, got string, allowed ...string) {
		if got != "" && !slices.Contains(allowed, got) {
			errs = append(errs, fmt.Errorf("%s: %q is not one of %q", key, got, allowed))
		}
	}
	oneOf("node.gpudirect", b.Node.GPUDirect, "peermem", "dmabuf", "any")
	oneOf("node.conf_compute", b.Node.ConfCompute, "on", "off")
	for _, name := range slices.Sorted(maps.Keys(b.Cards)) {
		c, key := b.Cards[name], fmt.Sprintf("card.%q.", name)
		oneOf(key+"ecc", c.ECC, "on", "off")
		oneOf(key+"mig", c.MIG, "on", "off")
		oneOf(key+"persistence", c.Persistence, "on", "off")
		if !(min(float64(min(c.Count, c.PCIeGen, c.PCIeWidth, c.NVLinks.Or(0), c.SMClock)), c.PowerLimit) >= 0) {
			errs = append(errs, fmt.Errorf("%s: a number is negative", key[:len(key)-1]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Ports)) {
		oneOf(fmt.Sprintf("port.%q.layer", name), b.Ports[name].Layer, "infiniband", "ethernet")
	}
	return errors.Join(errs...)
}
