package host

import (
	"errors"
	"syscall"

	"gpuhooks/internal/gpu"
)

// PathFault is the error of a path as data: only so does it cross the probe's
// pipe. What one may not read is said to be so: it is not "there is none".
func PathFault(path string, err error) gpu.Fault {
	f := gpu.Fault{Call: path, Kind: gpu.FaultOther, Text: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		f.Code = int(errno)
		if errno == syscall.EACCES || errno == syscall.EPERM {
			f.Kind = gpu.FaultPermission
		}
	}
	return f
}
