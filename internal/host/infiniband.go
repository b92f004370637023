package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
)

const infiniband = "sys/class/infiniband"

// maxPorts bounds the ports that are read: a card with virtual functions can
// show hundreds.
const maxPorts = 128

// portCounters are those that say something about the link. Each file below
// counters/ asks the card's firmware, so that no more are read than are judged.
var portCounters = []string{
	"link_downed", "local_link_integrity_errors", "link_error_recovery", "symbol_error",
	"port_rcv_errors", "excessive_buffer_overrun_errors",
}

// Ports lists the ports of the InfiniBand and RoCE devices. One that cannot be
// read is a fault and leaves the others whole. It stops at a time.
func (f FS) Ports(until time.Time) (out []gpu.Port, faults []gpu.Fault) {
	devices, err := os.ReadDir(f.Path(infiniband))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []gpu.Fault{PathFault("/"+infiniband, err)}
	}
	for _, d := range devices {
		dir := path.Join(infiniband, d.Name(), "ports")
		numbers, err := numbered(f.Path(dir))
		if err != nil {
			faults = append(faults, PathFault("/"+dir, err))
			continue
		}
		slices.Sort(numbers)
		for _, n := range numbers {
			if len(out) == maxPorts {
				return out, append(faults, gpu.Fault{Call: "/" + infiniband, Kind: gpu.FaultOther, Text: fmt.Sprintf("more than %d ports", maxPorts)})
			}
			if time.Now().After(until) {
				return out, append(faults, gpu.Fault{Call: "/" + infiniband, Kind: gpu.FaultTimeout, Text: fmt.Sprintf("%d ports were read", len(out))})
			}
			p, err := f.port(d.Name(), n)
			if err != nil {
				faults = append(faults, PathFault("/"+path.Join(dir, strconv.Itoa(n)), err))
			}
			out = append(out, p)
		}
	}
	return out, faults
}

// port reads one port; what could be read is in it beside an error.
func (f FS) port(device string, number int) (gpu.Port, error) {
	dir := path.Join(infiniband, device, "ports", strconv.Itoa(number))
	p := gpu.Port{Device: printable(device), Port: number}
	var errs []error
	value := func(file string) string {
		s, err := f.value(dir, file)
		errs = append(errs, err)
		return printable(s)
	}
	p.State = parsePortState(value("state"))
	p.Physical = parsePortState(value("phys_state"))
	p.Layer = strings.ToLower(value("link_layer"))
	p.Rate = parsePortRate(value("rate"))
	if p.Physical == "disabled" { // by somebody who means it
		return p, errors.Join(errs...)
	}
	for _, name := range portCounters {
		s, err := f.value(dir, "counters", name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			// A function that may not ask the firmware refuses each time, and each
			// refusal is a line in the kernel log: once is enough.
			errs = append(errs, err)
			break
		}
		if n, err := strconv.ParseUint(s, 10, 64); err == nil { // else "N/A (no PMA)"
			if p.Counters == nil {
				p.Counters = gpu.Counters{}
			}
			p.Counters[gpu.Counter(name)] = n
		}
	}
	return p, errors.Join(errs...)
}

// parsePortState reads "4: ACTIVE" and "5: LinkUp".
func parsePortState(s string) string {
	if _, name, ok := strings.Cut(s, ":"); ok {
		s = name
	}
	return strings.ToLower(strings.TrimSpace(s))
}

// parsePortRate reads "400 Gb/sec (4X NDR)".
func parsePortRate(s string) gpu.Opt[float64] {
	number, _, ok := strings.Cut(s, " Gb/sec")
	rate, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(rate > 0 && rate < 1e6) { // NaN is neither
		return gpu.Opt[float64]{}
	}
	return gpu.Some(rate)
}
