//go:build cgo

package main

import (
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/xid"
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
		k.Fault = kmsgFault(err)
		return k
	}
	defer log.Close()
	var p xid.Parser
	b, err := xid.Scan(log, &p)
	if err != nil {
		k.Fault = kmsgFault(err)
	}
	xid.Assign(b.Events, xid.UUIDs(cards, nil))
	k.Events, k.Lost, k.Loaded = b.Events, b.Lost, b.Loaded
	k.LastSeq = max(b.LastSeq, after)
	return k
}

func kmsgFault(err error) *gpu.Fault {
	f := host.PathFault("/dev/kmsg", err)
	return &f
}
