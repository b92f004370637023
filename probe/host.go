//go:build cgo

package main

import (
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
)

// hostTime is how long after its start the probe waits for what surrounds the
// GPUs; the health check waits 4 s for the whole answer.
const hostTime = 2 * time.Second

// readHost reads what surrounds the GPUs, beside them, and writes it as soon as
// it is there: if the driver hangs, it tells who hangs in it.
func readHost(fs host.FS, dirs []string, p gpu.Presence, out *lines, start time.Time, done chan<- bool) {
	defer close(done)
	out.guard("host", func() {
		var faults []gpu.Fault
		p.PCI, faults = fs.Links(p.PCI)
		h := fs.Surroundings(dirs, start.Add(hostTime))
		var err error
		if p.Caps, err = fs.Capabilities(); err != nil {
			faults = append(faults, host.PathFault("nvidia-caps: capabilities", err))
		}
		if p.CapMinors, err = fs.CapabilityMinors(); err != nil {
			faults = append(faults, host.PathFault("nvidia-caps: devices", err))
		}
		h.Faults = append(h.Faults, faults...)
		out.put(driver.Line{Presence: &p})
		out.put(driver.Line{Host: &h})
	})
}

// waitForHost waits until the host was read, a moment longer than its parts take.
func waitForHost(done <-chan bool, start time.Time) {
	select {
	case <-done:
	case <-time.After(time.Until(start.Add(hostTime + 500*time.Millisecond))):
	}
}
