//go:build cgo

package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// quantile returns the q-th quantile (nearest rank); 0 of none.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return s[max(0, int(math.Ceil(q*float64(len(s))))-1)]
}

// residentKiB is how much memory this process occupies; 0 where the kernel does
// not tell.
func residentKiB() int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				return 0
			}
		}
	}
	return n
}

func mib(kib int) float64 { return float64(kib) / 1024 }

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// round keeps six significant digits: more is noise, and NaN is no JSON.
func round(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	if v == 0 {
		return 0.0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
