package check

import (
	"fmt"
	"time"

	"gpuhooks/internal/config"
)

var clock = Check{
	Name: "clock", Code: "CLOCK", Tier: 0, Class: Config, Host: true,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Does something keep the clock right: is the kernel's largest possible error below [limits] clock_error, and, where the baseline says clock_sync, is the clock synchronised?",
		Why:  "With a wrong clock munge refuses Slurm's messages, licences of vGPUs break silently, and the times of records and kernel messages do not fit those of other nodes.",
		Cure: "chronyc tracking (or ntpq -p, timedatectl); restart the service and see that its servers answer. chrony tells the kernel only with rtcsync in its configuration.",
	},
	Run: func(in Input) []Finding {
		h := in.Node.Host
		if h == nil {
			return unseen()
		}
		if f := hostFault(h, "adjtimex"); f != nil {
			return []Finding{faulty(f)}
		}
		c, ok := h.Clock.Get()
		off := time.Duration(c.MaxError * float64(time.Second))
		limit := in.Limits.ClockError.D()
		switch {
		case !ok:
			return []Finding{{Outcome: Skip, Text: "the kernel does not tell"}}
		case limit > 0 && off > limit:
			state := "synchronised"
			if !c.Synchronised {
				state = "not synchronised"
			}
			return []Finding{{Outcome: Fail, Text: fmt.Sprintf("the clock is %s and may be wrong by %s", state, off.Round(time.Millisecond))}}
		case in.Baseline.Node.ClockSync && !c.Synchronised:
			return []Finding{{Outcome: Fail, Text: "nothing synchronises the clock, and the baseline asks for it"}}
		}
		return nil
	},
}
