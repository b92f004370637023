package baseline

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// header says what the file is.
const header = `# What this node is expected to have. gpu-healthcheck and the hooks compare with
# it; what is left out is not judged. Read it before you install it:
# "gpu-healthcheck baseline check --baseline FILE" compares this node with it.
# Where a list stands, one of its values must fit.
`

// Write prints a baseline as a TOML file: the same baseline gives the same text.
func Write(w io.Writer, b Baseline) error {
	var t strings.Builder
	t.WriteString(header)
	line(&t, "schema", b.Schema)
	t.WriteString("\n[node]\n")
	line(&t, "driver", b.Node.Driver)
	line(&t, "pci", b.Node.PCI)
	line(&t, "daemons", b.Node.Daemons)
	line(&t, "gpudirect", b.Node.GPUDirect)
	line(&t, "clock_sync", b.Node.ClockSync)
	line(&t, "conf_compute", b.Node.ConfCompute)
	for _, name := range slices.Sorted(maps.Keys(b.Cards)) {
		writeCard(&t, name, b.Cards[name])
	}
	for _, name := range slices.Sorted(maps.Keys(b.Ports)) {
		fmt.Fprintf(&t, "\n[port.%s]\n", quote(name))
		line(&t, "layer", b.Ports[name].Layer)
		line(&t, "rate_gbps", b.Ports[name].Rate)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func writeCard(t *strings.Builder, name string, c Card) {
	fmt.Fprintf(t, "\n[card.%s]\n", quote(name))
	line(t, "count", c.Count)
	line(t, "vbios", c.VBIOS)
	line(t, "inforom", c.InfoROM)
	line(t, "gsp", c.GSP)
	line(t, "pcie_gen", c.PCIeGen)
	line(t, "pcie_width", c.PCIeWidth)
	if n, ok := c.NVLinks.Get(); ok {
		fmt.Fprintf(t, "nvlinks = %d\n", n) // 0 means something
	}
	line(t, "power_limit_watts", c.PowerLimit)
	line(t, "sm_clock_limit_mhz", c.SMClock)
	line(t, "memory_total_bytes", c.Memory)
	line(t, "ecc", c.ECC)
	line(t, "mig", c.MIG)
	line(t, "persistence", c.Persistence)
	line(t, "compute_mode", c.ComputeMode)
	line(t, "virtualization", c.Virtualization)
	line(t, "licensed", c.Licensed)
	line(t, "fabric", c.Fabric)
	if c.Instances != nil {
		var pairs []string
		for _, p := range slices.Sorted(maps.Keys(c.Instances)) {
			pairs = append(pairs, fmt.Sprintf("%s = %d", quote(p), c.Instances[p]))
		}
		fmt.Fprintf(t, "instances = { %s }\n", strings.Join(pairs, ", "))
	}
}

// line writes one key, unless it expects nothing.
func line(t *strings.Builder, key string, value any) {
	switch v := value.(type) {
	case string:
		if v != "" {
			fmt.Fprintf(t, "%s = %s\n", key, quote(v))
		}
	case []string:
		var quoted []string
		for _, s := range v {
			quoted = append(quoted, quote(s))
		}
		if len(v) > 0 {
			fmt.Fprintf(t, "%s = [%s]\n", key, strings.Join(quoted, ", "))
		}
	case bool:
		if v {
			fmt.Fprintf(t, "%s = true\n", key)
		}
	case float64:
		switch {
		case v == float64(int64(v)) && v != 0:
			fmt.Fprintf(t, "%s = %.1f\n", key, v)
		case v != 0:
			fmt.Fprintf(t, "%s = %g\n", key, v)
		}
	default: // whole numbers
		if s := fmt.Sprint(v); s != "0" {
			fmt.Fprintf(t, "%s = %s\n", key, s)
		}
	}
}

// quote writes a TOML string: JSON's escapes are among TOML's.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always has a JSON form
	}
	return strings.ReplaceAll(string(b), "\x7f", "")
}
