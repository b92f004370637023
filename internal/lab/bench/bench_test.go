package main

import (
	"maps"
	"testing"
	"time"
)

func TestPerGPU(t *testing.T) {
	got := perGPU(map[string]int{
		"nvmlInit_v2": 1, "nvmlDeviceGetName": 3, "nvmlDeviceGetName gpu=0": 1, "nvmlDeviceGetName gpu=7": 2, "nvmlDeviceGetUUID gpu=7": 4,
	})
	if want := map[string]int{"0": 1, "7": 6}; !maps.Equal(got, want) || most(got) != 6 {
		t.Errorf("got %v, most %d; want %v", got, most(got), want)
	}
}

// What waits for the library is not stretched by a slow machine.
func TestHere(t *testing.T) {
	b := bench{stretch: 3}
	if got := b.here(12*time.Millisecond, 0); got != 36*time.Millisecond {
		t.Errorf("12 ms: %s", got)
	}
	if got := b.here(40*time.Millisecond, 28*time.Millisecond); got != 64*time.Millisecond {
		t.Errorf("40 ms of which 28 wait: %s", got)
	}
}

func TestQuantiles(t *testing.T) {
	sorted := []time.Duration{1, 2, 3, 4, 100}
	if p(sorted, 0.5) != 3 || p(sorted, 0.99) != 100 || p(sorted[:1], 0.5) != 1 {
		t.Errorf("p50 %d, p99 %d", p(sorted, 0.5), p(sorted, 0.99))
	}
}
