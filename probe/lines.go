//go:build cgo

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
)

// lines writes driver.Line values, each with one write(2), so that a reader
// that stops at a deadline has whole lines.
type lines struct {
	mu sync.Mutex
	to *os.File
}

// put writes one line. Once nobody reads any more there is nothing left to do.
func (l *lines) put(line driver.Line) {
	b, err := json.Marshal(line)
	if err != nil {
		b, _ = json.Marshal(driver.Line{Fault: &gpu.Fault{Call: "json", Kind: gpu.FaultOther, Text: err.Error()}})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.to.Write(append(b, '\n')); err != nil {
		os.Exit(1)
	}
}

func (l *lines) fault(f gpu.Fault) { l.put(driver.Line{Fault: &f}) }

// guard runs f and turns a panic into a fault line.
func (l *lines) guard(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			l.fault(gpu.Fault{Call: what, Kind: gpu.FaultOther, Text: fmt.Sprintf("panic: %v: %.600s", p, debug.Stack())})
		}
	}()
	f()
}

// leaveWithReader ends the process once the reading end of the pipe is closed:
// a probe whose caller has gone must not stay.
func leaveWithReader(to *os.File) {
	fds := []unix.PollFd{{Fd: int32(to.Fd())}}
	for {
		n, err := unix.Poll(fds, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		if fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0 {
			os.Exit(1)
		}
		if fds[0].Revents != 0 { // POLLHUP of a terminal: not ours to judge
			return
		}
	}
}
