package check

// All lists every check. Their order is that of a drain reason: what explains
// the others stands before them.
func All() []Check {
	pointers := []*Check{ // fewer instructions than 50 copies
		&probeAnswer,
		&driverLoaded,
		&driverMismatch,
		&gpuLost,
		&gpuSilent,
		&xids,
		&repeatedAppXID,
		&eccUncorrected,
		&rowRemapFailure,
		&unrepairableMemory,
		&sramThreshold,
		&spareRows,
		&resetRequired,
		&recoveryAction,
		&retiredPages,
		&driverStuck,
		&deviceNodes,
		&deviceCaps,
		&pciDevices,
		&gpuCount,
		&fabricState,
		&nvlink,
		&pcieLink,
		&pcieSlot,
		&pcieAER,
		&daemons,
		&rdmaPort,
		&gpuDirect,
		&confCompute,
		&vgpuLicence,
		&migLayout,
		&computeMode,
		&rowRemapPending,
		&repairPending,
		&eccCorrected,
		&nvlinkErrors,
		&throttle,
		&temperature,
		&leftOverProcesses,
		&memoryInUse,
		&persistence,
		&eccMode,
		&migPending,
		&migEmpty,
		&powerLimit,
		&clocks,
		&versions,
		&virtualization,
		&siblings,
		&rdmaErrors,
		&clock,
		&directories,
		&baselineFile,
		&readings,
	}
	out := make([]Check, len(pointers))
	for i, c := range pointers {
		out[i] = *c
	}
	return out
}

// Names lists the names of all checks in their order.
func Names() []string {
	var out []string
	for _, c := range All() {
		out = append(out, c.Name)
	}
	return out
}
