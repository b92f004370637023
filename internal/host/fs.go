// Package host reads what the kernel and the NVIDIA driver show in /proc, /sys
// and /dev, without asking NVML. Every reader starts at a root, so that several
// simulated nodes can live on one machine; reading and parsing are apart, and
// everything read is bounded in size.
package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FS is the root under which proc, sys and dev are read: "/" on a real node.
type FS string

// NewFS returns the FS of a root; "" is "/".
func NewFS(root string) FS {
	if root == "" {
		return "/"
	}
	return FS(filepath.Clean(root))
}

// Path returns a path below the root.
func (fs FS) Path(parts ...string) string {
	return filepath.Join(append([]string{string(fs)}, parts...)...)
}

// Limits for what is read, far above what the kernel writes.
const (
	smallFile = 4 << 10   // one value
	largeFile = 256 << 10 // a table
)

// read returns at most limit bytes of a file below the root. Tier 0 reads some
// hundred small files, so it asks the kernel for no more than it must: package
// os would register each of them with the poller first, and room on the heap
// for each would be most of what a look takes.
func (fs FS) read(limit int, parts ...string) ([]byte, error) {
	path := fs.Path(parts...)
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var room [smallFile]byte
	var b []byte
	for len(b) < limit {
		n, err := retry(func() (int, error) { return unix.Read(fd, room[:min(len(room), limit-len(b))]) })
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		b = append(b, room[:n]...)
	}
	return b, nil
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// value returns the one value that a small file holds.
func (fs FS) value(parts ...string) (string, error) {
	b, err := fs.read(smallFile, parts...)
	return strings.TrimSpace(string(b)), err
}

// BusID writes a PCI address as NVML does, 00000000:3B:00.0. It knows the forms
// of sysfs, of the driver's messages with and without function and domain, and
// of NVML itself; "" for anything else.
func BusID(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "PCI:")
	function := uint64(0)
	if i := strings.IndexByte(s, '.'); i >= 0 {
		var err error
		if function, err = strconv.ParseUint(s[i+1:], 16, 8); err != nil || function > 7 || len(s) != i+2 {
			return ""
		}
		s = s[:i]
	}
	groups := strings.Split(s, ":")
	if len(groups) == 2 { // without the domain
		groups = append([]string{"0"}, groups...)
	}
	if len(groups) != 3 {
		return ""
	}
	var n [3]uint64
	for i, g := range groups {
		var err error
		if n[i], err = strconv.ParseUint(g, 16, 32); err != nil || len(g) > 8 {
			return ""
		}
	}
	if n[1] > 0xff || n[2] > 0xff {
		return ""
	}
	return fmt.Sprintf("%08X:%02X:%02X.%d", n[0], n[1], n[2], function)
}
