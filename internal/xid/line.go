package xid

import (
	"encoding/json"
	"strconv"
	"strings"
)

// ParseLine looks at one line of some log: dmesg in its forms, syslog, journal
// (text or JSON), or /dev/kmsg itself. It is for logs that people bring and for
// a previous boot's journal; the live log is read by Scan, which sees what a
// line can only claim.
//
// Lines that another program wrote, or that quote a kernel line, raise nothing.
func ParseLine(line string) (Event, bool) {
	text, count, ok := kernelText(line)
	if !ok {
		return Event{}, false
	}
	var p Parser
	e, ok := p.text(text)
	if ok {
		e.Count = count
	}
	return e, ok
}

// kernelText takes a log's prefix off, and says how often syslog saw the line.
func kernelText(s string) (text string, count int, ok bool) {
	s = strings.TrimSpace(withoutColour(s))
	if strings.HasPrefix(s, "{") {
		if s, ok = jsonText(s); !ok {
			return "", 0, false
		}
	}
	// rsyslog writes a line end as #012, the kernel as \x0a.
	s = strings.NewReplacer("#012", "\n", `\x0a`, "\n").Replace(s)
	for {
		rest, ok := cutPrefix(s)
		if !ok {
			return "", 0, false
		}
		if rest == s {
			break
		}
		s = strings.TrimLeft(rest, " ")
	}
	if rest, ok := strings.CutPrefix(s, "message repeated "); ok {
		times, quoted, ok := strings.Cut(rest, " times: [")
		n, err := strconv.Atoi(times)
		if !ok || err != nil || n < 1 {
			return "", 0, false
		}
		return strings.TrimSpace(strings.TrimSuffix(quoted, "]")), n, true
	}
	return s, 1, true
}

// cutPrefix takes one piece of a prefix off, or returns s as it is when the
// message itself begins. False: the line is not the kernel's.
func cutPrefix(s string) (string, bool) {
	for _, begin := range []string{"NVRM: ", "nvidia-nvswitch", "GSP task ", "message repeated "} {
		if strings.HasPrefix(s, begin) {
			return s, true
		}
	}
	if rest, priority, ok := cutPriority(s); ok {
		return rest, priority>>3 == 0
	}
	if head, rest, ok := strings.Cut(s, "]"); ok && strings.HasPrefix(head, "[") && isTime(head[1:]) {
		return strings.TrimPrefix(rest, ":"), true // [ 12.345678], [ T1946], [Fri Sep 30 07:24:24 2022]
	}
	// syslog's "Mar  5 19:54:38 node kernel: ", "kernel: " alone. A colon and a
	// blank before it would mean that somebody quotes the line.
	if head, rest, ok := strings.Cut(s, "kernel: "); ok && (head == "" || strings.HasSuffix(head, " ")) &&
		!strings.ContainsAny(head, `"(|`) && !strings.Contains(head, ": ") {
		return rest, true
	}
	word, rest, ok := strings.Cut(s, " ")
	if ok && isTime(word) {
		return rest, true // 2023-08-11T06:31:16,494892+00:00, 16:17:35.348
	}
	// dmesg -x writes "kern  :warn  : ", Talos "192.0.2.1: kern:  err: [time]: ".
	if rest, ok := cutFacility(s); ok {
		return rest, true
	}
	if ok && strings.HasSuffix(word, ":") {
		if rest, ok := cutFacility(strings.TrimSpace(rest)); ok {
			return rest, true
		}
	}
	return "", false
}

// cutPriority takes "<4>" or kmsg's "4,8812,771234567,-;" off.
func cutPriority(s string) (rest string, priority uint64, ok bool) {
	var number string
	if inside, found := strings.CutPrefix(s, "<"); found {
		number, rest, ok = strings.Cut(inside, ">")
	} else if head, text, found := strings.Cut(s, ";"); found {
		if fields := strings.Split(head, ","); len(fields) >= 4 {
			number, rest, ok = fields[0], text, true
		}
	}
	priority, err := strconv.ParseUint(number, 10, 16)
	return rest, priority, ok && err == nil
}

// cutFacility takes "kern  :warn  : " off.
func cutFacility(s string) (string, bool) {
	facility, rest, ok := strings.Cut(s, ":")
	if !ok || strings.TrimSpace(facility) != "kern" {
		return "", false
	}
	level, rest, ok := strings.Cut(rest, ":")
	return rest, ok && !strings.Contains(strings.TrimSpace(level), " ")
}

// isTime says whether s can be the time or the thread mark of a log line.
func isTime(s string) bool {
	s = strings.TrimSpace(s)
	if s == "..." {
		return true
	}
	digits := strings.Count(s, ":") > 0 || strings.Trim(s, "0123456789.") == ""
	if !digits && len(s) > 1 && (s[0] == 'T' || s[0] == 'C') { // thread or CPU
		digits = strings.Trim(s[1:], "0123456789") == ""
	}
	if !digits || len(s) == 0 || len(s) > 40 {
		return false
	}
	return strings.ContainsAny(s, "0123456789") && strings.Trim(s, "0123456789") != "" && !strings.ContainsAny(s, `"()=`) &&
		!strings.HasSuffix(s, ":")
}

// jsonText takes the message out of a journal entry, which must come from the
// kernel, or out of an agent's event.
func jsonText(s string) (string, bool) {
	var j struct {
		Message    string `json:"MESSAGE"`
		Transport  string `json:"_TRANSPORT"`
		Identifier string `json:"SYSLOG_IDENTIFIER"`
		Details    struct {
			Message string `json:"message"`
		} `json:"details"`
	}
	if json.Unmarshal([]byte(s), &j) != nil {
		return "", false
	}
	if j.Transport != "" && j.Transport != "kernel" || j.Identifier != "" && j.Identifier != "kernel" {
		return "", false
	}
	if j.Message == "" {
		j.Message = j.Details.Message
	}
	return j.Message, j.Message != ""
}

// withoutColour removes terminal colours, "\x1b[33m".
func withoutColour(s string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		s = strings.TrimPrefix(strings.TrimLeft(after, "0123456789;"), "m")
	}
}
