package host

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// KernelRecord is one record of the kernel log.
type KernelRecord struct {
	Seq           uint64    // counts from 0 at boot
	Facility      int       // 0 is the kernel; a program that writes to /dev/kmsg cannot have it
	Level         int       // 0 emergency … 7 debug
	MonotonicUsec uint64    // since boot
	Time          time.Time // boot time + MonotonicUsec
	Text          string    // escapes undone; may hold line ends
}

// Overrun says that records were overwritten before they could be read: what
// was read is not all that happened. Reading goes on behind the gap.
type Overrun struct {
	Lost  uint64 // how many
	Next  uint64 // number of the record behind the gap
	Since uint64 // microseconds since boot of the record before the gap; 0 when it was not read here
	Until uint64 // … of the one behind it
}

func (o *Overrun) Error() string {
	return fmt.Sprintf("kernel log: %d records were overwritten before they were read", o.Lost)
}

// KernelLog reads dev/kmsg below a root: the character device of a real node,
// or, of a simulated one, a regular file of the same records that only grows.
//
// Records are numbered without gaps from 0 at boot. A reader that does not
// begin there, or after SeekAfter's number, is told so by an Overrun.
type KernelLog struct {
	// Filter, if set, sees each record's text before its escapes are undone.
	// Records that it refuses are counted but not returned.
	Filter func(text []byte) bool

	fd     int
	device bool
	boot   time.Time

	buf        []byte
	start, end int  // what of buf is read but not consumed
	skipping   bool // inside a line that was too long

	next uint64 // the number that comes next
	usec uint64 // of the record before it; 0 when that was not read here
	held bool   // cur was read, but an Overrun had to be said first
	cur  rawRecord
}

// OpenKernelLog opens the log; boot times its records (FS.BootTime). It never
// waits for records. The caller closes it.
func OpenKernelLog(f FS, boot time.Time) (*KernelLog, error) {
	path := f.Path("dev/kmsg")
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("stat %s: %w", path, err)
	}
	mode := st.Mode & unix.S_IFMT
	if mode != unix.S_IFCHR && mode != unix.S_IFREG {
		unix.Close(fd)
		return nil, fmt.Errorf("%s is neither a character device nor a file", path)
	}
	return &KernelLog{fd: fd, device: mode == unix.S_IFCHR, boot: boot, buf: make([]byte, 64<<10)}, nil
}

// Close closes the log.
func (l *KernelLog) Close() error { return unix.Close(l.fd) }

// SeekAfter makes Next go on behind the record with that number. Call it before
// the first Next, and only with a number of this boot.
func (l *KernelLog) SeekAfter(seq uint64) { l.next = seq + 1 }

// SeekTime tells when the record given to SeekAfter was written, in microseconds
// since boot, so that an Overrun right behind it has a beginning.
func (l *KernelLog) SeekTime(usec uint64) { l.usec = usec }

// LastSeq returns the number of the last record passed, and false before the
// first. Give it to SeekAfter next time.
func (l *KernelLog) LastSeq() (uint64, bool) {
	if l.next == 0 {
		return 0, false
	}
	return l.next - 1, true
}

// LastTime returns when the last record passed was written, in microseconds
// since boot; 0 when none was read yet.
func (l *KernelLog) LastTime() uint64 { return l.usec }

// Next returns the next record. io.EOF: nothing more now, ask again later.
// *Overrun: records were lost; call Next again. Any other error is final.
func (l *KernelLog) Next() (KernelRecord, error) {
	for {
		if !l.held {
			if err := l.read(); err != nil {
				return KernelRecord{}, err
			}
			if l.cur.seq < l.next {
				continue
			}
			if lost := l.cur.seq - l.next; lost > 0 {
				l.held, l.next = true, l.cur.seq
				return KernelRecord{}, &Overrun{Lost: lost, Next: l.cur.seq, Since: l.usec, Until: l.cur.usec}
			}
		}
		l.held = false
		l.next, l.usec = l.cur.seq+1, l.cur.usec
		if l.Filter == nil || l.Filter(l.cur.text) {
			return l.cur.record(l.boot), nil
		}
	}
}

// read puts the next record into l.cur, which points into l.buf.
func (l *KernelLog) read() error {
	for {
		line, err := l.line()
		if err != nil {
			return err
		}
		if rec, ok := splitRecord(line); ok {
			l.cur = rec
			return nil
		} // else a continuation (" KEY=value") or rubbish
	}
}

// fill reads more behind what is buffered. A device gives one record a call.
func (l *KernelLog) fill() error {
	if l.start > 0 {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	}
	for {
		n, err := unix.Read(l.fd, l.buf[l.end:])
		switch {
		case err == nil && n > 0:
			l.end += n
			return nil
		case err == nil || errors.Is(err, unix.EAGAIN):
			return io.EOF
		case errors.Is(err, unix.EINTR), l.device && errors.Is(err, unix.EPIPE):
			// EPIPE: overwritten; the next read begins with the oldest record there
			// is, and the gap in the numbers tells how many are lost.
		default:
			return fmt.Errorf("read kernel log: %w", err)
		}
	}
}
