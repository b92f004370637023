//go:build cgo

package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// watch wakes the sampler when a run appears, ends or is closed, or when the
// driver is asked for. Without inotify it wakes twenty times a second: an
// epilog waits 80 ms.
type watch struct {
	wake  chan struct{}
	file  *os.File
	fd    int
	known map[string]bool
}

const watchMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR

func newWatch(done <-chan struct{}) *watch {
	w := &watch{wake: make(chan struct{}, 1), known: map[string]bool{}, fd: -1}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		go w.poll(done)
		return w
	}
	w.fd, w.file = fd, os.NewFile(uintptr(fd), "inotify")
	go w.read()
	return w
}

func (w *watch) close() {
	if w.file != nil {
		_ = w.file.Close()
	}
}

// add watches a directory and says whether that is new: what happened in it
// before has to be looked for.
func (w *watch) add(dir string) bool {
	if w.file == nil || w.known[dir] {
		return false
	}
	if _, err := unix.InotifyAddWatch(w.fd, dir, watchMask); err != nil {
		return false // it is gone again, which its parent's watch tells
	}
	w.known[dir] = true
	return true
}

// forget lets a directory of the same name be watched anew. The kernel drops
// the watch with the directory.
func (w *watch) forget(dir string) { delete(w.known, dir) }

func (w *watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watch) read() {
	buf := make([]byte, 4096)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				return
			}
			w.signal()
			return
		}
		if relevant(buf[:n]) {
			w.signal()
		}
	}
}

// relevant says whether an event concerns us: the sampler's own files and
// files on their way (.name) do not.
func relevant(b []byte) bool {
	for len(b) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(b[4:])
		length := int(binary.NativeEndian.Uint32(b[12:]))
		if len(b) < unix.SizeofInotifyEvent+length {
			return true
		}
		name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length]), "\x00")
		if mask&(unix.IN_Q_OVERFLOW|unix.IN_IGNORED) != 0 {
			return true
		}
		switch {
		case strings.HasPrefix(name, "."), name == "sums.json", strings.HasPrefix(name, "sampler."):
		default:
			return true
		}
		b = b[unix.SizeofInotifyEvent+length:]
	}
	return false
}

func (w *watch) poll(done <-chan struct{}) {
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.signal()
		case <-done:
			return
		}
	}
}

// runDirs are the directories that the sampler watches from the start.
func runDirs(run string) []string { return []string{run, filepath.Join(run, "runs")} }
