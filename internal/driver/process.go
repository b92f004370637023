package driver

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How a process that does not answer is ended: TERM (a driver call may be left
// half-done by KILL), a grace, KILL, and a moment to see whether it died.
const (
	grace  = 300 * time.Millisecond
	moment = 120 * time.Millisecond
)

// process is a started probe.
type process struct {
	pid    int
	out    *os.File
	exited chan struct{} // closed when it is gone and reaped
	state  error         // how it ended; read after exited
	tail   *tail
}

// start runs the probe in its own session with an empty environment, its own
// pipes and no descriptor of ours: slurmd waits for the end of the pipe that it
// gave us, and a stuck probe must not hold it.
func start(path string, args ...string) (*process, error) {
	closeOnExec()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		r.Close()
		w.Close()
		return nil, err
	}
	pid, err := spawn(path, args, w, errW)
	w.Close()
	errW.Close()
	if err != nil {
		r.Close()
		errR.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p := &process{pid: pid, out: r, exited: make(chan struct{}), tail: &tail{done: make(chan struct{})}}
	go p.tail.read(errR)
	go func() {
		defer close(p.exited)
		p.state = wait(pid)
	}()
	return p, nil
}

// spawn starts a program. Package os would first start a child of its own to see
// whether the kernel has pidfds, which costs a prolog a tenth of its time; we are
// the parent, so the number stays ours until we have waited for it.
func spawn(path string, args []string, stdout, stderr *os.File) (pid int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	return syscall.ForkExec(path, append([]string{path}, args...), &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{null.Fd(), stdout.Fd(), stderr.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// wait reaps a child and says how it ended; nil is status 0.
func wait(pid int) error {
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case ws.Signaled():
			return fmt.Errorf("signal: %v", ws.Signal())
		case ws.ExitStatus() != 0:
			return fmt.Errorf("exit status %d", ws.ExitStatus())
		default:
			return nil
		}
	}
}

// gone waits up to d for the process to be gone.
func (p *process) gone(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}

// end ends the process and what it started; false says that it survived KILL.
func (p *process) end() bool {
	// ESRCH means that nothing is left to signal, and there is nobody else to tell.
	_ = syscall.Kill(-p.pid, syscall.SIGTERM)
	if p.gone(grace) {
		// What it left behind in its session gets no grace.
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		return true
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	return p.gone(moment)
}

// closeOnExec keeps every descriptor that we inherited from the probe. Those
// that Go opens are marked already; 0, 1 and 2 are given anew.
func closeOnExec() {
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Before Linux 5.11.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// trusted says why a program may not be started by root: somebody else could
// have written it.
func trusted(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s: not an absolute path", path)
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s: not a program", path)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	for _, p := range []string{path, filepath.Dir(path)} {
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok || sys.Uid != 0 || st.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("%s: not owned by root or writable by others: not started", p)
		}
	}
	return nil
}

// tail keeps the last bytes of a probe's stderr.
type tail struct {
	mu   sync.Mutex
	b    []byte
	done chan struct{}
}

const tailSize = 4 << 10

func (t *tail) read(f io.ReadCloser) {
	defer close(t.done)
	defer f.Close()
	buf := make([]byte, tailSize)
	for {
		n, err := f.Read(buf)
		t.mu.Lock()
		t.b = append(t.b, buf[:n]...)
		t.b = t.b[max(0, len(t.b)-tailSize):]
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// text waits a moment for the end, so that the last words of a crash are in it.
func (t *tail) text(wait time.Duration) string {
	select {
	case <-t.done:
	case <-time.After(wait):
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
