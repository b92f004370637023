package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

var rdmaPort = Check{
	Name: "rdma-port", Code: "RDMAPORT", Tier: 0, Class: Fabric, Host: true,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Is every InfiniBand and RoCE port of the baseline active, with its rate and link layer? Without a baseline a port that is down says nothing: it may be unused.",
		Why:  "A job on several nodes with one dead or slow port fails or runs at that port's speed, on all its nodes.",
		Cure: "ibstat, then the cable, transceiver and switch port. \"init\" and \"armed\" wait for the subnet manager (a warning: look there first, it concerns all nodes).",
	},
	Run: func(in Input) []Finding {
		h := in.Node.Host
		if h == nil {
			return unseen()
		}
		if len(in.Baseline.Ports) == 0 {
			return []Finding{{Outcome: Skip, Text: "the baseline names no port"}}
		}
		var out []Finding
		for _, name := range slices.Sorted(maps.Keys(in.Baseline.Ports)) {
			if f := judgePort(h, name, in.Baseline.Ports[name]); f.Outcome != Pass {
				out = append(out, f)
			}
		}
		return out
	},
}

// portName is a port as the baseline names it: mlx5_0/1.
func portName(p gpu.Port) string { return fmt.Sprintf("%s/%d", p.Device, p.Port) }

func judgePort(h *gpu.Host, name string, want baseline.Port) Finding {
	i := slices.IndexFunc(h.Ports, func(p gpu.Port) bool { return portName(p) == name })
	if i < 0 {
		if f := hostFault(h, "/sys/class/infiniband"); f != nil {
			return faulty(f)
		}
		return Finding{Outcome: Fail, Text: fmt.Sprintf("port %s is not there", name)}
	}
	p := h.Ports[i]
	rate, known := p.Rate.Get()
	switch {
	case p.State == "" || p.Physical == "":
		f := hostFault(h, portPath(p))
		if f == nil {
			f = &gpu.Fault{Call: portPath(p), Kind: gpu.FaultGarbage, Text: "it has no state"}
		}
		return faulty(f)
	case p.State == "init" || p.State == "armed":
		return Finding{Outcome: Warn, Text: fmt.Sprintf("port %s is up and %s: it waits for the subnet manager", name, p.State)}
	case !strings.HasPrefix(p.State, "active"): // active_defer: an error of the link that is being cleared
		return Finding{Outcome: Fail, Text: fmt.Sprintf("port %s is %s (%s)", name, p.State, p.Physical)}
	case want.Layer != "" && p.Layer != "" && !strings.EqualFold(want.Layer, p.Layer):
		return Finding{Outcome: Fail, Class: Config, Text: fmt.Sprintf("port %s is %s, the baseline says %s", name, p.Layer, want.Layer)}
	case known && rate < want.Rate:
		return Finding{Outcome: Fail, Text: fmt.Sprintf("port %s runs at %g of %g Gb/s", name, rate, want.Rate)}
	}
	return Finding{Outcome: Pass}
}

// portPath is where a port stands in sysfs; a fault of it begins so.
func portPath(p gpu.Port) string {
	return fmt.Sprintf("/sys/class/infiniband/%s/ports/%d", p.Device, p.Port)
}
