package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// used is what a process has taken so far.
type used struct {
	cpu time.Duration // of all its threads
	rss float64       // bytes
}

// usage reads it for the sampler whose heartbeat is in that file.
func usage(heartbeat string) (used, error) {
	b, err := os.ReadFile(heartbeat)
	if err != nil {
		return used{}, fmt.Errorf("no sampler: %w", err)
	}
	var beat struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(b, &beat); err != nil {
		return used{}, err
	}
	var u used
	// schedstat counts nanoseconds, where stat counts ticks of 10 ms.
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", beat.PID))
	if err != nil {
		return u, err
	}
	for _, t := range threads {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", beat.PID, t.Name()))
		if err != nil {
			continue // a thread that ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(ns)
	}
	b, err = os.ReadFile(fmt.Sprintf("/proc/%d/statm", beat.PID))
	if err != nil {
		return u, err
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(b))[1], 64)
	u.rss = pages * float64(os.Getpagesize())
	return u, err
}
