package gpu

import "fmt"

// Fault is a reading that failed. It is data, so that it crosses the pipe from
// gpu-probe and one GPU's trouble leaves the others whole.
type Fault struct {
	Call string    `json:"call"` // NVML function or path
	Code int       `json:"code"` // NVML return code, or errno for a path
	Kind FaultKind `json:"kind"`
	Text string    `json:"text,omitempty"` // our own words
}

// FaultKind says what a failed reading means.
type FaultKind string

// The kinds. Several NVML codes are verdicts and not mere errors (facts: health.md §3).
const (
	FaultLost          FaultKind = "lost"           // NVML_ERROR_GPU_IS_LOST
	FaultResetRequired FaultKind = "reset-required" // NVML_ERROR_RESET_REQUIRED
	FaultNoDriver      FaultKind = "no-driver"      // NVML_ERROR_DRIVER_NOT_LOADED
	FaultMismatch      FaultKind = "mismatch"       // NVML_ERROR_LIB_RM_VERSION_MISMATCH
	FaultNoLibrary     FaultKind = "no-library"     // libnvidia-ml could not be loaded
	FaultPermission    FaultKind = "permission"     // NVML_ERROR_NO_PERMISSION
	FaultInUse         FaultKind = "in-use"
	FaultTimeout       FaultKind = "timeout"
	FaultMemory        FaultKind = "out-of-memory" // the job's cgroup may be the cause
	FaultGarbage       FaultKind = "garbage"       // an answer that cannot be true
	FaultOther         FaultKind = "error"
)

// Error makes a Fault usable as an error.
func (f Fault) Error() string {
	s := fmt.Sprintf("%s: %s (code %d)", f.Call, f.Kind, f.Code)
	if f.Text != "" {
		s += ": " + f.Text
	}
	return s
}

// HasFault says whether one of the faults is of that kind.
func HasFault(faults []Fault, kind FaultKind) bool {
	for _, f := range faults {
		if f.Kind == kind {
			return true
		}
	}
	return false
}

// Lost says that NVML answers GPU_IS_LOST for this card.
func (g *GPU) Lost() bool { return HasFault(g.Faults, FaultLost) }
