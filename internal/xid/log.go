package xid

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is an event of a log that somebody brings, with what the log printed.
// Seq and Last are the number of its line, counted from 1.
type Line struct {
	Event
	Printed Printed
	Stamp   string // the log's own time, as it printed it
}

// Printed is what a line said in its own words.
type Printed struct {
	PCI     string // address of the card without "PCI:"; "" where it named none
	PID     string // digits, "<unknown>" or "<n/a>"
	Process string // also "<unknown>"; chosen by the job
}

// Log turns the lines of a log into events. The zero value is ready.
type Log struct {
	parser Parser
	number int
	raised int // line of the last event
	began  int // line on which a message of several began
	uuids  map[string]string
}

// maxUUIDs bounds how many cards of a log are known by UUID.
const maxUUIDs = 256

// learn reads "NVRM: GPU at PCI:0000:3b:00: GPU-…", which the driver prints before
// a card's first XID.
func (l *Log) learn(text string) {
	rest, ok := strings.CutPrefix(text, "NVRM: GPU at PCI:")
	where, uuid, ok2 := strings.Cut(rest, ": ")
	if !ok || !ok2 || !strings.HasPrefix(uuid, "GPU-") || len(uuid) != len("GPU-00000000-0000-0000-0000-000000000000") {
		return
	}
	if pci, _ := address(where); pci != "" && len(l.uuids) < maxUUIDs {
		if l.uuids == nil {
			l.uuids = map[string]string{}
		}
		l.uuids[pci] = clean(uuid)
	}
}

// marks are in every line that may be of interest; the last one is "NVRM" as
// the journal writes what is not UTF-8.
var marks = [...][]byte{[]byte("NVRM:"), []byte("nvidia-nvswitch"), []byte("GSP task "), []byte("78,86,82,77")}

// Add looks at the next line, and returns the event that it raises, if any.
func (l *Log) Add(line []byte) (Line, bool) {
	l.number++
	interesting := false
	for _, m := range marks {
		interesting = interesting || bytes.Contains(line, m)
	}
	if !interesting {
		return Line{}, false
	}
	k, ok := kernelText(string(line))
	if !ok {
		return Line{}, false
	}
	before := l.parser.lost
	l.parser.loading(k.text, uint64(l.number))
	l.learn(k.text)
	e, ok := l.parser.text(k.text)
	if l.parser.lost.pci != "" && strings.HasPrefix(k.text, "NVRM: The NVIDIA GPU ") {
		l.began = l.number
	}
	if !ok {
		return Line{}, false
	}
	e.Count = k.count
	if e.Kind != KindSXID { // the address is the switch's
		e.UUID = l.uuids[e.PCI]
	}
	out := Line{Event: e, Printed: l.parser.printed, Stamp: k.stamp}
	// Where the message began, unless that would break the order of the lines.
	first := l.number
	if e.Kind == KindFallen && l.began > l.raised && e.PCI != "" && e.PCI == before.pci {
		first = l.began
	}
	l.raised = l.number
	out.Seq, out.Last = uint64(first), uint64(l.number)
	return out, true
}

// Lines is how many lines were looked at.
func (l *Log) Lines() int { return l.number }

// Window says which of the log's events later lines have cancelled.
func (l *Log) Window() Window { return Window{Loaded: l.parser.Loaded(), Probed: l.parser.Probed()} }

// clean makes foreign text fit for one line of a log or terminal.
func clean(s string) string { return cleanTo(s, maxText) }

// Bounds on foreign text, bytes. The kernel's own names of processes have 15.
const (
	maxText = 300
	maxName = 100
)

func cleanTo(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
		for range utf8.UTFMax - 1 { // a rune may have lost its tail
			if r, n := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && n == 1 {
				s = s[:len(s)-1]
			}
		}
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return cleanRunes(s)
		}
	}
	return s
}

func cleanRunes(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		case !unicode.IsPrint(r): // also what turns the direction of writing
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
