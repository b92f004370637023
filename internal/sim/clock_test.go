//go:build cgo

package sim_test

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func monotonicSeconds() float64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}

func ptr(v *[8]byte) unsafe.Pointer { return unsafe.Pointer(v) }
