package host

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
)

// Surroundings reads what surrounds the GPUs. Every part runs by itself and is
// given up at a time: a network filesystem or a card's firmware that hangs costs
// only its own answer, of which a fault then speaks.
func (f FS) Surroundings(dirs []string, until time.Time) gpu.Host {
	parts := []part{
		{"/proc", func(h *gpu.Host) { h.Stuck, h.Daemons, h.Faults = f.Threads(until) }},
		{"/" + infiniband, func(h *gpu.Host) { h.Ports, h.Faults = f.Ports(until) }},
		{"gpudirect", func(h *gpu.Host) {
			var err error
			h.GPUDirect, err = f.GPUDirect()
			h.Faults = faultsOf("gpudirect", err)
		}},
		{"adjtimex", func(h *gpu.Host) {
			var err error
			h.Clock, err = f.Clock()
			h.Faults = faultsOf("adjtimex", err)
		}},
		{"nvswitches", func(h *gpu.Host) {
			var err error
			h.NVSwitches, err = f.nvSwitches()
			h.Faults = faultsOf("nvswitches", err)
		}},
	}
	for _, d := range dirs {
		parts = append(parts, part{"directory " + d, func(h *gpu.Host) { h.Dirs = []gpu.Dir{Directory(d)} }})
	}
	return gather(parts, until)
}

// part is one thing that is read.
type part struct {
	name string
	read func(*gpu.Host)
}

// gather runs all parts and puts together what has come until the time.
func gather(parts []part, until time.Time) gpu.Host {
	type answer struct {
		part int
		host gpu.Host
	}
	answers := make(chan answer, len(parts)) // so that one that comes too late ends all the same
	for i, p := range parts {
		go func() {
			a := answer{part: i}
			defer func() {
				if v := recover(); v != nil {
					a.host = gpu.Host{Faults: []gpu.Fault{{Call: p.name, Kind: gpu.FaultOther, Text: fmt.Sprintf("panic: %v", v)}}}
				}
				answers <- a
			}()
			p.read(&a.host)
		}()
	}
	got := make([]*gpu.Host, len(parts))
	// A little longer than the parts that watch the time themselves.
	late := time.After(time.Until(until) + 100*time.Millisecond)
	for range parts {
		select {
		case a := <-answers:
			got[a.part] = &a.host
			continue
		case <-late:
		}
		break
	}
	var out gpu.Host
	for i, h := range got {
		if h == nil {
			h = &gpu.Host{Faults: []gpu.Fault{{Call: parts[i].name, Kind: gpu.FaultTimeout, Text: "no answer in time"}}}
		}
		merge(&out, *h)
	}
	return out
}

// merge adds what one part has read.
func merge(to *gpu.Host, h gpu.Host) {
	to.Stuck = append(to.Stuck, h.Stuck...)
	to.Daemons = append(to.Daemons, h.Daemons...)
	to.Ports = append(to.Ports, h.Ports...)
	to.Dirs = append(to.Dirs, h.Dirs...)
	to.Faults = append(to.Faults, h.Faults...)
	to.NVSwitches += h.NVSwitches
	if h.GPUDirect.IsSet() {
		to.GPUDirect = h.GPUDirect
	}
	if h.Clock.IsSet() {
		to.Clock = h.Clock
	}
}

func faultsOf(path string, err error) []gpu.Fault {
	if err == nil {
		return nil
	}
	return []gpu.Fault{PathFault(path, err)}
}

// nvSwitches counts the NVSwitches that the kernel's driver holds: where a
// hypervisor keeps them, they are not on the bus.
func (f FS) nvSwitches() (int, error) {
	entries, err := os.ReadDir(f.Path("sys/bus/pci/drivers/nvidia-nvswitch"))
	if os.IsNotExist(err) {
		return 0, nil
	}
	isDevice := func(e os.DirEntry) bool { return strings.Contains(e.Name(), ":") && BusID(e.Name()) != "" }
	return len(slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !isDevice(e) })), err
}
