package xid

import (
	"bytes"
	"maps"
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
)

// maxCode bounds the numbers that are taken for an XID or SXid.
const maxCode = 99999

// Relevant says quickly whether a record's text may be of interest to a Parser:
// the filter for a KernelLog.
func Relevant(text []byte) bool {
	return bytes.HasPrefix(text, []byte("NVRM: ")) ||
		bytes.HasPrefix(text, []byte("nvidia-nvswitch")) ||
		bytes.HasPrefix(text, []byte("GSP task "))
}

// Parser turns records into events. It remembers what one message of several
// records began with, and when the driver was loaded. The zero value is ready.
type Parser struct {
	lost   lostCard // of a "The NVIDIA GPU …" that may turn out to have fallen off the bus
	ttl    int      // how many more of the driver's records may finish it
	loaded gpu.Opt[uint64]
	probed map[string]uint64 // NVSwitches, by address

	printed Printed // of the last event
}

type lostCard struct{ pci, printed string }

// Add looks at one record, and returns the event that it raises, if any. Records
// that a program wrote to /dev/kmsg raise nothing.
func (p *Parser) Add(r host.KernelRecord) (Event, bool) {
	if r.Facility != 0 {
		return Event{}, false
	}
	p.loading(r.Text, r.Seq)
	e, ok := p.text(r.Text)
	e.Seq, e.Last = r.Seq, r.Seq
	e.First, e.Until = r.Time, r.Time
	return e, ok
}

// Loaded is the number of the record with which the driver was last loaded;
// what it said of a GPU before that no longer holds.
func (p *Parser) Loaded() gpu.Opt[uint64] { return p.loaded }

// loading notices that the driver is loaded, or takes an NVSwitch in.
func (p *Parser) loading(text string, seq uint64) {
	if strings.HasPrefix(text, "NVRM: loading NVIDIA UNIX ") {
		p.loaded = gpu.Some(seq)
	}
	if rest, ok := strings.CutPrefix(text, "nvidia-nvswitch: Probing device "); ok {
		word, _, _ := strings.Cut(rest, ",")
		if pci := host.BusID(word); pci != "" && len(p.probed) < maxSwitches {
			if p.probed == nil {
				p.probed = map[string]uint64{}
			}
			p.probed[pci] = seq
		}
	}
}

// maxSwitches bounds how many NVSwitches are told apart.
const maxSwitches = 64

// Probed are the numbers of the records with which the driver last took an
// NVSwitch in, by its address: what was said of it before was cured by a reset.
func (p *Parser) Probed() map[string]uint64 { return maps.Clone(p.probed) }

// text looks at the kernel's own text, without any log's prefix.
func (p *Parser) text(s string) (Event, bool) {
	s = strings.TrimRight(s, " \t\r\n")
	// Only the first line decides: a process name with a line end in it could
	// forge the next.
	line, _, _ := strings.Cut(s, "\n")
	var e Event
	var ok bool
	p.printed = Printed{}
	switch {
	case strings.HasPrefix(line, "NVRM: Xid "):
		e, ok = p.xid(strings.TrimPrefix(line, "NVRM: Xid "))
	case strings.HasPrefix(line, "nvidia-nvswitch"):
		e, ok = p.sxid(line)
	case strings.HasPrefix(line, "GSP task "):
		e, ok = Event{Kind: KindGSP, Text: line}, true
	case strings.HasPrefix(line, "NVRM: "):
		e, ok = p.message(s)
	}
	if !ok {
		return Event{}, false
	}
	e.Text, e.Process, e.Count = clean(e.Text), cleanTo(e.Process, maxName), 1
	return e, true
}

// xid reads "(PCI:0000:3b:00 GPU-I:01 GPU-CI:00): 94, pid=1, name=x, text";
// old drivers leave PCI: out, and some texts say just "79: text".
func (p *Parser) xid(s string) (Event, bool) {
	e := Event{Kind: KindXID}
	if inside, ok := strings.CutPrefix(s, "("); ok {
		where, rest, ok := strings.Cut(inside, "): ")
		if !ok {
			return e, false
		}
		p.printed.PCI = e.setPlace(where)
		s = rest
	}
	var ok bool
	if e.Code, s, ok = cutCode(s); !ok {
		return e, false
	}
	s = strings.TrimLeft(s, ",: ")
	e.Text = p.cutProcess(&e, s)
	e.readDetail()
	return e, true
}

// setPlace reads what is in the parentheses, and returns the address as it is there.
func (e *Event) setPlace(s string) (printed string) {
	for i, word := range strings.Fields(strings.ReplaceAll(s, ",", " ")) {
		if i == 0 {
			e.PCI, printed = address(word)
		} else if n, ok := strings.CutPrefix(word, "GPU-I:"); ok {
			e.GI = decimal(n)
		} else if n, ok := strings.CutPrefix(word, "GPU-CI:"); ok {
			e.CI = decimal(n)
		}
	}
	return printed
}

// address reads an address, and returns it in NVML's form and as it is printed.
func address(word string) (pci, printed string) {
	if pci = host.BusID(word); pci == "" {
		return "", ""
	}
	return pci, strings.TrimPrefix(word, "PCI:")
}

// cutCode reads the number and what ends it. A number that runs on into
// something else is none.
func cutCode(s string) (code int, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == 0 || i > 5 || i < len(s) && !strings.ContainsRune(", :", rune(s[i])) {
		return 0, "", false
	}
	code, err := strconv.Atoi(s[:i])
	return code, s[i:], err == nil && code > 0
}

// cutProcess takes "pid=1, name=x, " off the front. A name may hold anything, so
// it ends where words begin that the driver is known to write; where there are
// none, nothing of the rest is trusted and all of it is the name.
func (p *Parser) cutProcess(e *Event, s string) string {
	rest, ok := strings.CutPrefix(s, "pid=")
	if !ok {
		return s
	}
	pid, rest, more := strings.Cut(rest, ",")
	e.PID = decimal(pid) // '<unknown>' and '<n/a>' leave it unset
	p.printed.PID = clean(strings.Trim(pid, "'"))
	if !more {
		return ""
	}
	rest = strings.TrimPrefix(rest, " ")
	name, ok := strings.CutPrefix(rest, "name=")
	if !ok {
		return rest
	}
	text := ""
	for i := 0; i+2 <= len(name); i++ {
		if name[i] == ',' && name[i+1] == ' ' && driverWords(name[i+2:]) {
			name, text = name[:i], name[i+2:]
			break
		}
	}
	p.printed.Process = clean(name)
	if name != "<unknown>" && name != "<n/a>" {
		e.Process = name
	}
	return text
}

// sxid reads "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 …".
func (p *Parser) sxid(s string) (Event, bool) {
	e := Event{Kind: KindSXID}
	_, s, ok := strings.Cut(s, ": ")
	if !ok {
		return e, false
	}
	s, ok = strings.CutPrefix(s, "SXid (")
	if !ok {
		return e, false
	}
	where, s, ok := strings.Cut(s, "): ")
	if !ok {
		return e, false
	}
	e.PCI, p.printed.PCI = address(where)
	if e.Code, s, ok = cutCode(s); !ok {
		return e, false
	}
	e.Text = strings.TrimLeft(s, ",: ")
	e.Switch = SwitchUnstated
	for prefix, said := range map[string]SwitchReport{
		"Fatal": SwitchFatal, "Severity 1": SwitchFatal,
		"Non-fatal": SwitchNonFatal, "Severity 0": SwitchNonFatal,
		"Data {": SwitchData,
	} {
		if strings.HasPrefix(e.Text, prefix) {
			e.Switch = said
		}
	}
	return e, true
}

// decimal reads a whole number; anything else is unset.
func decimal(s string) gpu.Opt[int] {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return gpu.Opt[int]{}
	}
	return gpu.Some(n)
}
