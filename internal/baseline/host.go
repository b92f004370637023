package baseline

import (
	"fmt"
	"maps"
	"slices"

	"gpuhooks/internal/gpu"
)

// compareHost judges the daemons, GPUDirect, the clock and the RDMA ports, where
// they were read.
func (b Baseline) compareHost(h *gpu.Host) []Difference {
	if h == nil {
		return nil
	}
	var out []Difference
	for _, d := range b.Node.Daemons {
		if !slices.Contains(h.Daemons, d) {
			out = append(out, differ("daemons", d, "running", "stopped")...)
		}
	}
	if want := b.Node.GPUDirect; want != "" && !gpuDirect(h, want) {
		out = append(out, differ("gpudirect", "GPUDirect", want, reach(h))...)
	}
	if c, ok := h.Clock.Get(); b.Node.ClockSync && !c.Synchronised {
		out = append(out, differ("clock_sync", "clock", "synchronised", map[bool]string{true: "not synchronised"}[ok])...)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Ports)) {
		out = append(out, differ("port", name, b.Ports[name].String(), ports(h)[name].String())...)
	}
	return out
}

// String writes a port as "infiniband 400 Gb/s"; one that is not active is
// "down".
func (p Port) String() string {
	if p.Layer == "" {
		return "down"
	}
	return fmt.Sprintf("%s %g Gb/s", p.Layer, p.Rate)
}

// ports are the active ones, as a baseline names them.
func ports(h *gpu.Host) map[string]Port {
	out := map[string]Port{}
	for _, p := range h.Ports {
		if p.State == "active" {
			out[fmt.Sprintf("%s/%d", p.Device, p.Port)] = Port{Layer: p.Layer, Rate: p.Rate.Or(0)}
		}
	}
	return out
}

// reach is by what GPUDirect works; "none" by nothing, "" is not known.
func reach(h *gpu.Host) string {
	d, ok := h.GPUDirect.Get()
	switch {
	case !ok:
		return ""
	case d.DMABuf:
		return "dmabuf"
	case d.Peermem:
		return "peermem"
	}
	return "none"
}

func gpuDirect(h *gpu.Host, want string) bool {
	d, _ := h.GPUDirect.Get()
	return want != "peermem" && d.DMABuf || want != "dmabuf" && d.Peermem
}
