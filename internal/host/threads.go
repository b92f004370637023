package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/gpu"
)

// scan walks once over all processes: for threads that wait inside the driver
// and for the daemons of the driver. What vanishes while it is read has ended.
type scan struct {
	fs      FS
	self    int    // our own threads may be in a call of the driver
	buf     []byte // one buffer for all that is read, tens of thousands of files
	path    []byte
	stuck   []gpu.Stuck
	daemons map[string]bool
	faults  []gpu.Fault
}

// maxStuck bounds what is listed: a driver that hangs holds every thread of a
// big job.
const maxStuck = 64

// Threads lists the threads in state D inside the NVIDIA driver and, of the
// daemons that matter, those that run. It stops at a time: a big node has a
// hundred thousand threads.
//
// A simulated root may hold processes of its own below sim/proc: /proc/PID is
// the machine's there as well.
func (f FS) Threads(until time.Time) (stuck []gpu.Stuck, daemons []string, faults []gpu.Fault) {
	s := scan{fs: f, self: os.Getpid(), buf: make([]byte, 0, smallFile), daemons: map[string]bool{}}
	if f != "/" {
		s.fs = NewFS(f.Path("sim"))
	}
	pids, err := numbered(s.fs.Path("proc"))
	if errors.Is(err, fs.ErrNotExist) && f != "/" {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, []gpu.Fault{PathFault("/proc", err)}
	}
	one := false
	for i, pid := range pids {
		if i%64 == 0 && time.Now().After(until) {
			s.fault(gpu.Fault{Call: "/proc", Kind: gpu.FaultTimeout, Text: fmt.Sprintf("looked at %d of %d processes", i, len(pids))})
			break
		}
		one = one || pid == 1
		s.process(pid)
	}
	if f == "/" && !one && len(s.faults) == 0 {
		s.fault(gpu.Fault{Call: "/proc", Kind: gpu.FaultPermission, Text: "other users' processes are hidden"})
	}
	s.settle(until)
	for _, d := range Daemons {
		if s.daemons[d] {
			daemons = append(daemons, d)
		}
	}
	return s.stuck, daemons, s.faults
}

// fault keeps one fault only: ten thousand processes may refuse for one reason.
func (s *scan) fault(f gpu.Fault) {
	if len(s.faults) == 0 {
		s.faults = append(s.faults, f)
	}
}

// numbered lists the entries of a directory that are numbers.
func numbered(dir string) ([]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, n := range names {
		if n[0] >= '0' && n[0] <= '9' {
			if v, err := strconv.Atoi(n); err == nil {
				out = append(out, v)
			}
		}
	}
	return out, nil
}

// process looks at a process: at its first thread, and at the others where it
// has any.
func (s *scan) process(pid int) {
	b := s.read(pid, 0, "stat")
	t, ok := parseThread(b)
	if !ok {
		return
	}
	if name := daemonOf(t.comm); name != "" && t.state != 'Z' && s.runs(pid, name) {
		s.daemons[name] = true
	}
	if pid == s.self {
		return
	}
	comm := string(t.comm) // the buffer is used again
	if t.state == 'D' {
		s.waiting(pid, pid, comm)
	}
	if t.threads < 2 {
		return
	}
	tids, err := numbered(s.fs.Path("proc", strconv.Itoa(pid), "task"))
	if err != nil {
		s.failed(err)
		return
	}
	for _, tid := range tids {
		if tid == pid {
			continue
		}
		if t, ok := parseThread(s.read(pid, tid, "stat")); ok && t.state == 'D' {
			s.waiting(pid, tid, string(t.comm))
		}
	}
}

// read returns a file of a process or, with tid, of a thread; nil when it is
// gone or may not be read.
func (s *scan) read(pid, tid int, file string) []byte {
	p := append(s.path[:0], s.fs.Path("proc")...)
	p = strconv.AppendInt(append(p, '/'), int64(pid), 10)
	if tid > 0 {
		p = strconv.AppendInt(append(p, "/task/"...), int64(tid), 10)
	}
	p = append(append(p, '/'), file...)
	s.path = p
	path := string(p)
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		s.failed(&os.PathError{Op: "open", Path: path, Err: err})
		return nil
	}
	defer unix.Close(fd)
	n, err := retry(func() (int, error) { return unix.Read(fd, s.buf[:cap(s.buf)]) })
	if err != nil {
		s.failed(&os.PathError{Op: "read", Path: path, Err: err})
		return nil
	}
	return s.buf[:n]
}

// failed takes an error, unless it says that the process has ended.
func (s *scan) failed(err error) {
	if !errors.Is(gone(err), fs.ErrNotExist) {
		s.fault(PathFault("/proc", err))
	}
}

// threadState is what the scan needs of a stat file.
type threadState struct {
	comm    []byte
	state   byte
	threads int
}

// parseThread reads the name, the state and the number of threads (fields 2, 3
// and 20 of man proc_pid_stat) without the rest.
func parseThread(b []byte) (threadState, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || len(b) < end+3 {
		return threadState{}, false
	}
	t := threadState{comm: b[open+1 : end], state: b[end+2]}
	rest := b[end+2:]
	for range 17 {
		i := bytes.IndexByte(rest, ' ')
		if i < 0 {
			return t, true
		}
		rest = rest[i+1:]
	}
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	t.threads, _ = strconv.Atoi(string(digits))
	return t, true
}
