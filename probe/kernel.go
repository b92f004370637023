//go:build cgo

package main

import (
	"errors"
	"io"
	"syscall"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
)

// openKernel opens the kernel log behind record after; 0 is its beginning.
func openKernel(fs host.FS, after uint64, now time.Time) (*host.KernelLog, error) {
	boot, err := fs.BootTime(now)
	if err != nil {
		return nil, err
	}
	k, err := host.OpenKernelLog(fs, boot)
	if err != nil {
		return nil, err
	}
	if after > 0 {
		k.SeekAfter(after)
	}
	return k, nil
}

// readKernel reads the driver's messages in the kernel log after a record.
func readKernel(fs host.FS, after uint64, cards []gpu.ProcGPU, now time.Time) driver.Kernel {
	k := driver.Kernel{LastSeq: after}
	log, err := openKernel(fs, after, now)
	if err != nil {
		k.Fault = pathFault("/dev/kmsg", err)
		return k
	}
	defer log.Close()
	_ = cards
	for {
		_, err := log.Next()
		var overrun *host.Overrun
		switch {
		case err == nil:
			continue
		case errors.As(err, &overrun):
			k.Lost += overrun.Lost
			continue
		case !errors.Is(err, io.EOF):
			k.Fault = pathFault("/dev/kmsg", err)
		}
		break
	}
	if seq, ok := log.LastSeq(); ok {
		k.LastSeq = seq
	}
	return k
}

// pathFault is an error of a path as a fault.
func pathFault(path string, err error) *gpu.Fault {
	f := &gpu.Fault{Call: path, Kind: gpu.FaultOther, Text: err.Error()}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		f.Code = int(errno)
		if errno == syscall.EACCES || errno == syscall.EPERM {
			f.Kind = gpu.FaultPermission
		}
	}
	return f
}
