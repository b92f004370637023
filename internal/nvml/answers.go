//go:build cgo

package nvml

import (
	"fmt"
	"math"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// answers collects what went wrong while one GPU, or the node, was read.
type answers struct {
	faults []gpu.Fault
}

// ok says whether the call answered. What the driver does not support is no
// fault; everything else is one.
func (a *answers) ok(call string, ret nvml.Return) bool {
	switch ret {
	case nvml.SUCCESS:
		return true
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NOT_FOUND, nvml.ERROR_NO_DATA,
		nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		return false
	}
	a.add(newFault(call, ret))
	return false
}

// garbage notes an answer that cannot be true.
func (a *answers) garbage(call string) {
	a.add(gpu.Fault{Call: call, Kind: gpu.FaultGarbage, Text: "the answer cannot be true"})
}

// add keeps a fault once, and never more than maxFaults of them.
func (a *answers) add(f gpu.Fault) {
	if len(a.faults) >= maxFaults {
		return
	}
	for _, old := range a.faults {
		if old == f {
			return
		}
	}
	a.faults = append(a.faults, f)
}

const maxFaults = 32

// lost says that nothing more can be learnt from this GPU: asking on would
// only cost time, or hang.
func (a *answers) lost() bool { return gpu.HasFault(a.faults, gpu.FaultLost) }

// newFault names a return code. NVML's own texts are not used: they depend on
// whether the library is loaded.
func newFault(call string, ret nvml.Return) gpu.Fault {
	return gpu.Fault{Call: call, Code: int(ret), Kind: faultKind(ret)}
}

func faultKind(ret nvml.Return) gpu.FaultKind {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		return gpu.FaultLost
	case nvml.ERROR_RESET_REQUIRED:
		return gpu.FaultResetRequired
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return gpu.FaultNoDriver
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return gpu.FaultMismatch
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return gpu.FaultNoLibrary
	case nvml.ERROR_NO_PERMISSION:
		return gpu.FaultPermission
	case nvml.ERROR_IN_USE:
		return gpu.FaultInUse
	case nvml.ERROR_TIMEOUT:
		return gpu.FaultTimeout
	case nvml.ERROR_MEMORY:
		return gpu.FaultMemory
	}
	return gpu.FaultOther
}

// text is a string from the driver without what does not belong in a log;
// unset where nothing is left.
func text(s string) gpu.Opt[string] {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s))
	if s == "" || s == "N/A" || s == "[N/A]" {
		return gpu.Opt[string]{}
	}
	return gpu.Some(s)
}

// percent turns 0..100 into a ratio. A driver may answer a little more than
// 100; more than 105 cannot be true.
func percent(v float64) (ratio float64, ok bool) {
	switch {
	case math.IsNaN(v), v < 0, v > 105:
		return 0, false
	case v > 100:
		return 1, true
	}
	return v / 100, true
}

// plausible says that v is a number and not one of the blanks that NVIDIA's
// tools use for "no value".
func plausible(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 && v < 0x7ffffffffff0 // DCGM's blank; 140 TB/s
}

func cudaVersion(v int) string {
	return fmt.Sprintf("%d.%d", v/1000, v%1000/10)
}
