package check

import (
	"fmt"
	"strings"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

const (
	linkDowned    gpu.Counter = "link_downed"
	linkIntegrity gpu.Counter = "local_link_integrity_errors"
)

// ceilings are where the counters stop: the card sends them in 8 and 4 bits.
var ceilings = map[gpu.Counter]uint64{linkDowned: 255, linkIntegrity: 15}

var rdmaErrors = Check{
	Name: "rdma-errors", Code: "RDMAERR", Tier: 0, Class: Fabric, Host: true,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Did the link of an InfiniBand or RoCE port go down since the last look, or count many integrity errors ([limits] port_errors_per_hour)?",
		Why:  "A link that flaps ends jobs on all their nodes, with errors that name other nodes than the one at fault.",
		Cure: "Reseat or replace cable and transceiver; compare with the switch's port. These counters stop at 255 and 15: perfquery -R (or the driver's restart) makes them count again.",
	},
	Run: func(in Input) []Finding {
		h := in.Node.Host
		if h == nil {
			return unseen()
		}
		if len(h.Ports) == 0 {
			if f := hostFault(h, "/sys/class/infiniband"); f != nil {
				return []Finding{faulty(f)}
			}
			return []Finding{{Outcome: Skip, Text: "the node has no such port"}}
		}
		var out []Finding
		var full []string
		compared := false
		for _, p := range h.Ports {
			delta, over, ok := in.growth(portName(p), p.Counters, time.Time{})
			if compared = compared || ok; ok {
				out = append(out, judgePortErrors(in, p, delta, over)...)
			}
			if f := hostFault(h, portPath(p)); f != nil && expected(in, p) {
				out = append(out, faulty(f))
			}
			for _, c := range []gpu.Counter{linkDowned, linkIntegrity} {
				if ok && delta[c] == 0 && atCeiling(p, c) {
					full = append(full, fmt.Sprintf("%s of port %s", c, portName(p)))
				}
			}
		}
		if !compared && len(out) == 0 {
			out = append(out, Finding{Outcome: Skip, Text: "no earlier look to compare with"})
		}
		if len(full) > 0 { // nobody knows whether there were more
			out = append(out, Finding{Outcome: Skip, Text: "full since an earlier look and counts no more: " + strings.Join(full, ", ")})
		}
		return out
	},
}

// expected says that the baseline names the port: of others (functions that may
// not ask the firmware) nobody needs the counters.
func expected(in Input, p gpu.Port) bool {
	_, ok := in.Baseline.Ports[portName(p)]
	return ok
}

func judgePortErrors(in Input, p gpu.Port, delta gpu.Counters, over time.Duration) []Finding {
	var out []Finding
	warn := func(c gpu.Counter, format string, args ...any) {
		text := fmt.Sprintf("port %s: ", portName(p)) + fmt.Sprintf(format, args...)
		if atCeiling(p, c) {
			text += fmt.Sprintf(" or more: %s has reached its highest value %d and counts no more", c, ceilings[c])
		}
		out = append(out, Finding{Outcome: Fail, Text: text})
	}
	ago := over.Round(time.Second)
	if n := delta[linkDowned]; n > 0 {
		warn(linkDowned, "the link went down %d times in %s", n, ago)
	}
	limit := in.Limits.PortErrorsPerHour
	if n := delta[linkIntegrity]; limit > 0 && (hourly(n, over) > limit || n > 0 && atCeiling(p, linkIntegrity)) {
		warn(linkIntegrity, "%d link integrity errors in %s", n, ago)
	}
	return out
}

func atCeiling(p gpu.Port, c gpu.Counter) bool {
	n, ok := p.Counters.Get(c)
	return ok && n >= ceilings[c]
}
