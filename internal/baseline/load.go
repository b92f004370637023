package baseline

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

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

// validate reports every value that cannot be meant.
func (b Baseline) validate() error {
	if b.Schema != Schema {
		return fmt.Errorf("schema: %q is not %q", b.Schema, Schema)
	}
	oneOf := func(key, got string, allowed ...string) error {
		if got != "" && !slices.Contains(allowed, got) {
			return fmt.Errorf("%s: %q is not one of %q", key, got, allowed)
		}
		return nil
	}
	errs := []error{
		oneOf("node.gpudirect", b.Node.GPUDirect, "peermem", "dmabuf", "any"),
		oneOf("node.conf_compute", b.Node.ConfCompute, "on", "off"),
	}
	for name, c := range b.Cards {
		key := fmt.Sprintf("card.%q.", name)
		errs = append(errs, oneOf(key+"ecc", c.ECC, "on", "off"), oneOf(key+"mig", c.MIG, "on", "off"), oneOf(key+"persistence", c.Persistence, "on", "off"))
		for field, n := range map[string]float64{
			"count": float64(c.Count), "pcie_gen": float64(c.PCIeGen), "pcie_width": float64(c.PCIeWidth), "nvlinks": float64(c.NVLinks.Or(0)),
			"power_limit_watts": c.PowerLimit, "sm_clock_limit_mhz": float64(c.SMClock),
		} {
			if !(n >= 0) {
				errs = append(errs, fmt.Errorf("%s%s: %g is negative", key, field, n))
			}
		}
	}
	for name, p := range b.Ports {
		errs = append(errs, oneOf(fmt.Sprintf("port.%q.layer", name), p.Layer, "infiniband", "ethernet"))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return errors.Join(errs...)
}
