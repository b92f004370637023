package check

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

// Names lists the names of all checks in their order.
func Names() []string {
	var out []string
	for _, c := range All() {
		out = append(out, c.Name)
	}
	return out
}
