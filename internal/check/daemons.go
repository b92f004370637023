package check

import (
	"fmt"
	"slices"

	"gpuhooks/internal/config"
)

var daemons = Check{
	Name: "daemons", Code: "DAEMON", Tier: 0, Class: Driver, Host: true,
	Default: config.PolicyDrain,
	Doc: Doc{
		What: "Do those of nv-fabricmanager, nvidia-imex, nvidia-persistenced and nv-hostengine run that the baseline names? Without a baseline: the fabric manager, beside NVSwitches (a warning).",
		Why:  "Without the fabric manager (or, between nodes, IMEX) new jobs on several GPUs fail with \"system not yet initialized\"; without the persistence daemon each job waits for the driver, without the host engine DCGM's figures are missing (warnings).",
		Cure: "systemctl status, then systemctl restart of nvidia-fabricmanager, nvidia-imex, nvidia-persistenced or nvidia-dcgm. A fabric manager that refuses to start has another version than the driver: journalctl -u nvidia-fabricmanager.",
	},
	Run: func(in Input) []Finding {
		h := in.Node.Host
		if h == nil {
			return unseen()
		}
		want := in.Baseline.Node.Daemons
		beside := len(want) == 0 && h.NVSwitches > 0
		if beside {
			want = []string{fabricManager}
		}
		if len(want) == 0 {
			return []Finding{{Outcome: Skip, Text: "the baseline names no daemon"}}
		}
		var out []Finding
		for _, name := range want {
			if slices.Contains(h.Daemons, name) {
				continue
			}
			f := Finding{Outcome: Fail, Text: name + " does not run, and the baseline has it"}
			if fault := hostFault(h, "/proc"); fault != nil {
				f = faulty(fault) // it may be among the processes that were not seen
			} else if beside {
				f = Finding{Outcome: Warn, Text: fmt.Sprintf("%s does not run beside %d NVSwitches", name, h.NVSwitches)}
			}
			switch name {
			case fabricManager:
				f.Code, f.Class = "FABRICMGR", Fabric
			case "nvidia-imex":
				f.Code, f.Class = "IMEXD", Fabric
			case "nvidia-persistenced":
				f.Code = "PERSISTD"
			case "nv-hostengine":
				f.Code = "HOSTENGINE"
			}
			if f.Class != Fabric && f.Outcome == Fail {
				f.Outcome = Warn // jobs run without it
			}
			out = append(out, f)
		}
		return out
	},
}

const fabricManager = "nv-fabricmanager"
