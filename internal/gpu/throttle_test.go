package gpu

import (
	"slices"
	"testing"
)

func TestThrottleReasons(t *testing.T) {
	for bits, want := range map[uint64][]string{
		0:                               nil,
		ReasonIdle:                      nil,
		ReasonPowerCap:                  {"power-cap"},
		ReasonHWSlowdown | 1<<6:         {"hw-thermal", "hw-slowdown"},
		ReasonPowerBrake | ReasonIdle:   {"power-brake"},
		1 << 40:                         nil, // a bit of a later driver
		ReasonSWThermal | 1<<1 | 1<<4:   {"sw-thermal", "app-clocks", "sync-boost"},
		ReasonDisplayClock | ReasonIdle: {"display"},
	} {
		if got := ThrottleReasons(bits); !slices.Equal(got, want) {
			t.Errorf("%#x: %v, want %v", bits, got, want)
		}
	}
}
