package main

import (
	"io"
	"strings"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
)

// csvColumns are one card as --format csv gives it: plain numbers, units in the
// names, an empty cell where the driver does not say.
var csvColumns = []struct {
	name string
	cell func(looked, *gpu.GPU) string
}{
	{"node", func(l looked, _ *gpu.GPU) string { return l.name }},
	{"time", func(l looked, _ *gpu.GPU) string {
		return l.look.Reading.Node.Time.UTC().Format("2006-01-02T15:04:05Z")
	}},
	{"index", func(_ looked, g *gpu.GPU) string { return empty(place(g.Index)) }},
	{"minor", func(_ looked, g *gpu.GPU) string { return empty(opt(g.Minor, "%d")) }},
	{"pci", func(_ looked, g *gpu.GPU) string { return g.PCI }},
	{"uuid", func(_ looked, g *gpu.GPU) string { return g.UUID }},
	{"name", func(_ looked, g *gpu.GPU) string { return g.Name }},
	{"serial", func(_ looked, g *gpu.GPU) string { return g.Serial.Or("") }},
	{"driver", func(l looked, _ *gpu.GPU) string { return l.look.Reading.Node.Driver.Version.Or("") }},
	{"vbios", func(_ looked, g *gpu.GPU) string { return g.VBIOS.Or("") }},
	{"gpu_utilization_ratio", metric(gpu.Utilization, "%.2f")},
	{"memory_used_bytes", metric(gpu.MemoryUsed, "%.0f")},
	{"memory_total_bytes", func(_ looked, g *gpu.GPU) string { return empty(opt(g.Health.MemoryTotal, "%d")) }},
	{"temperature_celsius", metric(gpu.Temperature, "%.0f")},
	{"power_watts", metric(gpu.Power, "%.1f")},
	{"power_limit_watts", func(_ looked, g *gpu.GPU) string { return empty(opt(g.Health.PowerLimit, "%.0f")) }},
	{"sm_clock_mhz", metric(gpu.SMClock, "%.0f")},
	{"throttled_by", func(_ looked, g *gpu.GPU) string {
		bits, ok := g.Health.Throttle.Get()
		if !ok {
			return ""
		}
		return strings.Join(gpu.ThrottleReasons(bits), "+")
	}},
	{"pcie_generation", func(_ looked, g *gpu.GPU) string { return empty(opt(g.Health.PCIeGen, "%d")) }},
	{"pcie_width", func(_ looked, g *gpu.GPU) string { return empty(opt(g.Health.PCIeWidth, "%d")) }},
	{"nvlinks_active", func(_ looked, g *gpu.GPU) string { return empty(opt(g.Health.NVLinksActive, "%d")) }},
	{"ecc", func(_ looked, g *gpu.GPU) string { return empty(mode(g.Health.ECC)) }},
	{"persistence", func(_ looked, g *gpu.GPU) string { return empty(onOff(g.Health.Persistence)) }},
	{"mig", func(_ looked, g *gpu.GPU) string { return empty(mode(g.Health.MIG)) }},
	{"result", func(l looked, g *gpu.GPU) string { return string(outcome(g, l.verdict)) }},
	{"checks", func(l looked, g *gpu.GPU) string { return strings.Join(l.against(g), " ") }},
}

func metric(m gpu.Metric, format string) func(looked, *gpu.GPU) string {
	return func(_ looked, g *gpu.GPU) string { return empty(reading(g.Readings, m, 1, format)) }
}

func empty(s string) string {
	if s == unknown {
		return ""
	}
	return s
}

// against names the checks that have something against a card.
func (l looked) against(g *gpu.GPU) []string {
	var out []string
	for _, f := range l.verdict.Findings {
		if f.GPU != nil && f.GPU.UUID == g.UUID {
			out = append(out, f.Check)
		}
	}
	return out
}

// csv writes one row a card. What concerns the node as a whole is in the exit
// status and in --json.
func (l looked) csv(w io.Writer) {
	var head []string
	for _, c := range csvColumns {
		head = append(head, c.name)
	}
	writeRow(w, head)
	for i := range l.gpus {
		var row []string
		for _, c := range csvColumns {
			row = append(row, quote(cli.Clean(c.cell(l, &l.gpus[i]))))
		}
		writeRow(w, row)
	}
}

func writeRow(w io.Writer, cells []string) {
	// The writer is a buffer, which takes everything.
	_, _ = io.WriteString(w, strings.Join(cells, ",")+"\n")
}

// quote is RFC 4180. A cell that a spreadsheet would take for a formula does
// not begin as one.
func quote(s string) string {
	if strings.HasPrefix(s, "=") || strings.HasPrefix(s, "@") || strings.HasPrefix(s, "+") {
		s = "'" + s
	}
	if strings.ContainsAny(s, ",\"") {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
