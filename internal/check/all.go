package check

import "slices"

// All lists every check. Their order is that of a drain reason: what explains
// the others stands before them.
func All() []Check {
	return []Check{
		probeAnswer,
		driverLoaded,
		driverMismatch,
		gpuLost,
		xids,
		eccUncorrected,
		rowRemapFailure,
		resetRequired,
		recoveryAction,
		retiredPages,
		deviceNodes,
		gpuCount,
		pcieLink,
		rowRemapPending,
		leftOverProcesses,
		persistence,
		migPending,
		migEmpty,
		readings,
	}
}

// Find returns the check of that name.
func Find(name string) (Check, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return Check{}, false
	}
	return all[i], true
}

// Names lists the names of all checks in their order.
func Names() []string {
	var out []string
	for _, c := range All() {
		out = append(out, c.Name)
	}
	return out
}
