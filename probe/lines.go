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

// prepare lets package json learn the types of all lines, which takes longer than
// to write them: beside what is read meanwhile it takes none of a look's time.
func prepare() {
	// A type that cannot be written shows in every line.
	_, _ = json.Marshal(driver.Line{})
}

// hello writes the first line, for which the other types need not be known.
func (l *lines) hello(h driver.Hello) {
	l.write(struct {
		Hello driver.Hello `json:"hello"`
	}{h})
}

// put writes one line.
func (l *lines) put(line driver.Line) { l.write(line) }

// write writes a value as a line. Once nobody reads any more there is nothing
// left to do.
func (l *lines) write(v any) {
	b, err := json.Marshal(v)
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
