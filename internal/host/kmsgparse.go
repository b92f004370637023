package host

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// rawRecord is a record whose text still has its escapes.
type rawRecord struct {
	seq, usec uint64
	priority  uint64
	text      []byte
}

func (r rawRecord) record(boot time.Time) KernelRecord {
	return KernelRecord{
		Seq:           r.seq,
		Facility:      int(r.priority >> 3),
		Level:         int(r.priority & 7),
		MonotonicUsec: r.usec,
		Time:          boot.Add(time.Duration(r.usec) * time.Microsecond),
		Text:          unescape(r.text),
	}
}

// ParseKernelRecord parses one line as /dev/kmsg gives it:
// "priority,sequence,microseconds,flags[,…];text"
// (https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg).
func ParseKernelRecord(line []byte, boot time.Time) (KernelRecord, bool) {
	r, ok := splitRecord(line)
	if !ok {
		return KernelRecord{}, false
	}
	return r.record(boot), true
}

func splitRecord(line []byte) (rawRecord, bool) {
	var r rawRecord
	head, text, ok := bytes.Cut(line, []byte{';'})
	if !ok {
		return r, false
	}
	r.text = text
	for i, field := range []*uint64{&r.priority, &r.seq, &r.usec} {
		n, rest, ok := cutNumber(head)
		if !ok || len(rest) == 0 && i < 2 || len(rest) > 0 && rest[0] != ',' {
			return r, false
		}
		*field = n
		head = bytes.TrimPrefix(rest, []byte{','})
	}
	return r, true
}

// cutNumber reads decimal digits; strconv would need a string each time.
func cutNumber(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if i == 18 {
			return 0, nil, false
		}
		n = n*10 + uint64(b[i]-'0')
	}
	return n, b[i:], i > 0
}

// unescape undoes \xNN, by which the kernel writes control characters,
// backslashes and everything that is not ASCII.
func unescape(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	var s strings.Builder
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) && b[i+1] == 'x' {
			if n, err := strconv.ParseUint(string(b[i+2:i+4]), 16, 8); err == nil {
				s.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		s.WriteByte(b[i])
	}
	return s.String()
}

// line returns the next whole line without its end; what has no end yet stays
// in the buffer. A line that does not fit into the buffer is left out, which
// its reader notices by the missing number.
func (l *KernelLog) line() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.start:l.end], '\n'); i >= 0 {
			line := l.buf[l.start : l.start+i]
			l.start += i + 1
			if l.skipping {
				l.skipping = false
				continue
			}
			return line, nil
		}
		if l.end-l.start == len(l.buf) {
			l.start, l.end, l.skipping = 0, 0, true
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}
