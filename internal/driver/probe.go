package driver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

// Bounds on an answer: one line, and all of it. A node of 16 GPUs with 7 MIG
// instances each stays far below.
const (
	maxLine   = 1 << 20
	maxAnswer = 32 << 20
)

// Probe is gpu-probe as the configuration names it.
type Probe struct {
	Path    string // the program
	Root    string // under which it reads /proc, /sys and /dev
	NVML    string // the library; "" is the linker's
	Run     string // the run directory: identity cache, notes about stuck probes
	Journal string // journalctl; "" is never asked
}

// New returns the configured probe.
func New(p config.Paths) Probe {
	return Probe{Path: p.Probe, Root: p.Root, NVML: p.NVML, Run: p.Run, Journal: journal(p)}
}

// journal is the configured journalctl; a simulated node's log is in no journal.
func journal(p config.Paths) string {
	if filepath.Clean(p.Root) != "/" {
		return ""
	}
	return p.Journal
}

// journalNeeds is what must be left to the deadline for the probe to ask the
// journal, should the kernel log have been overwritten: it gives it 2 s.
const journalNeeds = 3 * time.Second

func (p Probe) journalArgs(ctx context.Context) []string {
	until, ok := ctx.Deadline()
	if p.Journal == "" || ok && time.Until(until) < journalNeeds {
		return nil
	}
	return []string{"--journal", p.Journal}
}

// Request is what is asked of the probe.
type Request struct {
	Tier         int
	AfterSeq     uint64   // kernel log records after this one
	GPUs         []string // UUIDs; nil is all
	CountersOnly bool     // what an epilog needs
	Host         bool     // also what surrounds the GPUs (gpu.Host)
	Dirs         []string // of which Host is to say whether they are writable
}

// args is the probe's command line: all that it is told, since its environment
// is empty.
func (p Probe) args(more ...string) []string {
	args := []string{"read", "--root", p.Root, "--identity", filepath.Join(p.Run, "identity.json")}
	if p.NVML != "" {
		args = append(args, "--nvml", p.NVML)
	}
	return append(args, more...)
}

func (r Request) args() []string {
	args := []string{"--tier", strconv.Itoa(r.Tier), "--after", strconv.FormatUint(r.AfterSeq, 10)}
	if len(r.GPUs) > 0 {
		args = append(args, "--gpus", strings.Join(r.GPUs, ","))
	}
	if r.Host {
		args = append(args, "--host", "--dirs", strings.Join(r.Dirs, ","))
	}
	if r.CountersOnly {
		args = append(args, "--counters-only")
	}
	return args
}

// Read runs the probe and returns what it said until the context's deadline. It
// returns at the latest half a second after that, whatever the probe does.
func (p Probe) Read(ctx context.Context, req Request) Reading {
	began := time.Now()
	// Nothing waits for ever, not even by a caller's mistake.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := collector{}
	c.reading.Node.Time = began.UTC()
	answer, why := p.read(ctx, req, &c)
	r := c.reading
	r.Answer, r.Why, r.Elapsed = answer, why, time.Since(began)
	return r
}

func (p Probe) read(ctx context.Context, req Request, c *collector) (gpu.Answer, string) {
	if a, ok := living(p.Run); ok {
		return gpu.AnswerStuck, a.String()
	}
	if err := trusted(p.Path); err != nil {
		return gpu.AnswerNoProbe, err.Error()
	}
	// Without it (somebody who is not root) the probe reads all the same, only
	// without its cache.
	_ = os.MkdirAll(p.Run, 0o755)
	proc, err := start(p.Path, p.args(append(req.args(), p.journalArgs(ctx)...)...)...)
	if err != nil {
		return gpu.AnswerNoProbe, err.Error()
	}
	defer proc.out.Close()
	err = proc.answer(ctx, c)
	if err == nil {
		return gpu.AnswerWhole, ""
	}
	answer, why := c.judge(err)
	if !proc.end() {
		answer, why = p.abandon(proc, answer, why)
	}
	c.reading.Stderr = proc.tail.text(20 * time.Millisecond)
	return answer, why
}

// How an answer may end before it is whole.
var (
	errDeadline = errors.New("no whole answer before the deadline")
	errEnded    = errors.New("the probe ended")
	errClosed   = errors.New("the probe closed its output and went on")
)

// judge says what an answer that is not whole is worth.
func (c *collector) judge(err error) (gpu.Answer, string) {
	switch {
	case errors.Is(err, errDeadline) && c.answered():
		return gpu.AnswerPartial, err.Error()
	case errors.Is(err, errDeadline):
		return gpu.AnswerNone, err.Error()
	case errors.Is(err, errEnded):
		return gpu.AnswerCrash, err.Error()
	}
	return gpu.AnswerGarbage, err.Error()
}

// abandon leaves a process that survived KILL, with a note for the hooks to
// come. It sits in the driver: only state D proves that.
func (p Probe) abandon(proc *process, answer gpu.Answer, why string) (gpu.Answer, string) {
	a := abandoned{PID: proc.pid, Time: time.Now().UTC(), What: "probe"}
	var err error
	if a.BootID, err = machine.BootID(); err == nil {
		// Not reaped by us yet, so the number is still this process's.
		if s, e := machine.Process(proc.pid); e == nil {
			a.StartTicks = s.Start
			err = note(p.Run, a)
		}
	}
	if err != nil {
		why += fmt.Sprintf("; could not note it: %v", err)
	}
	if inKernel(proc.pid) {
		return gpu.AnswerStuck, fmt.Sprintf("probe %d sits in the driver and does not die", proc.pid)
	}
	return answer, why + fmt.Sprintf("; probe %d did not die within %s of KILL", proc.pid, moment)
}

// answer collects the lines of an answer until its last one; nil says that it is
// whole. After it returned nothing more is taken.
func (p *process) answer(ctx context.Context, c *collector) error {
	ended := make(chan error, 1)
	go func() {
		err := error(nil)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("reading it failed: %v", v)
			}
			ended <- err
		}()
		err = scan(rest{p.out}, c.take)
	}()
	defer c.close()
	exited := p.exited
	for {
		select {
		case err := <-ended:
			if c.close() {
				return nil
			}
			return p.why(ctx, err)
		case <-exited:
			// A child of it may hold the pipe: take what is there and no more.
			exited = nil
			_ = p.out.SetReadDeadline(time.Now())
		case <-ctx.Done():
			return errDeadline
		}
	}
}

// rest reads a pipe. What lies in it can be read after its deadline too: on a busy
// machine a probe may be long gone before its last lines are read.
type rest struct{ pipe *os.File }

func (r rest) Read(b []byte) (int, error) {
	n, late := r.pipe.Read(b)
	if !errors.Is(late, os.ErrDeadlineExceeded) {
		return n, late
	}
	raw, err := r.pipe.SyscallConn()
	if err != nil {
		return 0, late
	}
	if bad := raw.Control(func(fd uintptr) { n, err = unix.Read(int(fd), b) }); bad != nil || err != nil {
		return 0, late // also where nothing lies there: the pipe does not block
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// why says why the lines ended before the last one.
func (p *process) why(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errGarbage):
		return err
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", errGarbage, err)
	}
	select {
	case <-p.exited:
		if p.state == nil {
			return fmt.Errorf("%w before its answer was whole", errEnded)
		}
		return fmt.Errorf("%w: %w", errEnded, p.state)
	case <-time.After(200 * time.Millisecond):
		return errClosed
	case <-ctx.Done():
		return errDeadline
	}
}

// scan reads whole lines within the bounds until take has enough; nil at the end.
func scan(r io.Reader, take func([]byte) (more bool, err error)) error {
	limited := &io.LimitedReader{R: r, N: maxAnswer}
	s := bufio.NewScanner(limited)
	s.Buffer(make([]byte, 64<<10), maxLine)
	s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		if atEOF {
			return len(data), nil, nil // half a line
		}
		return 0, nil, nil
	})
	for s.Scan() {
		if more, err := take(s.Bytes()); err != nil || !more {
			return err
		}
	}
	if limited.N <= 0 {
		return fmt.Errorf("longer than %d bytes", maxAnswer)
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a line longer than %d bytes", maxLine)
	}
	return s.Err()
}
