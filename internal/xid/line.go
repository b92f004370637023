package xid

import (
	"strconv"
	"strings"
)

// kernelLine is what the kernel said, without what a log put around it.
type kernelLine struct {
	text  string
	stamp string // the log's time, as it printed it; "" without
	count int    // how often syslog saw the line
}

// maxPieces bounds what a log may put around a line: times, names, JSON in JSON.
const maxPieces = 12

// kernelText takes a log's prefix off.
func kernelText(s string) (kernelLine, bool) {
	l := kernelLine{count: 1}
	s = strings.Trim(withoutColour(s), " \t\r\n\x00\ufeff")
	for range maxPieces {
		if strings.HasPrefix(s, "{") {
			message, stamp, ok := jsonText(s)
			if !ok {
				return l, false
			}
			l.stamp = firstOf(l.stamp, stamp)
			s = strings.Trim(withoutColour(message), " \t\r\n\x00")
			continue
		}
		rest, ok := cutPrefix(s)
		switch {
		case !ok:
			return l, false
		case rest == s:
			return l.message(s)
		}
		l.stamp = firstOf(l.stamp, stampOf(s[:len(s)-len(rest)]))
		s = strings.TrimLeft(rest, " ")
	}
	return l, false
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// message is the line when nothing stands before the message any more.
func (l kernelLine) message(s string) (kernelLine, bool) {
	// rsyslog writes a line end as #012, the kernel as \x0a.
	if strings.Contains(s, "#012") || strings.Contains(s, `\x0a`) {
		s = strings.NewReplacer("#012", "\n", `\x0a`, "\n").Replace(s)
	}
	l.text = s
	rest, ok := strings.CutPrefix(s, "message repeated ")
	if !ok {
		return l, true
	}
	times, quoted, ok := strings.Cut(rest, " times: [")
	n, err := strconv.ParseUint(times, 10, 31)
	if !ok || err != nil || n < 1 {
		return l, false
	}
	l.text, l.count = strings.TrimSpace(strings.TrimSuffix(quoted, "]")), int(n)
	return l, true
}

// messageBegins are what the messages begin with that may be of interest.
var messageBegins = [...]string{"NVRM: ", "nvidia-nvswitch", "GSP task ", "message repeated "}

// cutPrefix takes one piece of a prefix off, or returns s as it is when the
// message itself begins. False: the line is not the kernel's.
func cutPrefix(s string) (string, bool) {
	for _, begin := range messageBegins {
		if strings.HasPrefix(s, begin) {
			return s, true
		}
	}
	if rest, priority, ok := cutPriority(s); ok {
		return cutRFC5424(rest), priority>>3 == 0
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
		return cutStream(rest), true // 2023-08-11T06:31:16,494892+00:00, 16:17:35.348
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

// cutStream takes off what a container's runtime writes behind the time:
// "stdout F " (all of a line) or "stderr P " (a part).
func cutStream(s string) string {
	for _, stream := range [...]string{"stdout ", "stderr "} {
		if rest, ok := strings.CutPrefix(s, stream); ok && len(rest) > 2 && (rest[0] == 'F' || rest[0] == 'P') && rest[1] == ' ' {
			return rest[2:]
		}
	}
	return s
}

// cutRFC5424 takes "1 2026-01-17T03:22:10Z node kernel - - - " off.
func cutRFC5424(s string) string {
	if !strings.HasPrefix(s, "1 ") {
		return s
	}
	if head, rest, ok := strings.Cut(s, " kernel - - - "); ok && strings.Count(head, " ") == 2 {
		return rest
	}
	return s
}

// cutPriority takes "<4>" or kmsg's "4,8812,771234567,-;" off.
func cutPriority(s string) (rest string, priority uint64, ok bool) {
	var number string
	if inside, found := strings.CutPrefix(s, "<"); found {
		number, rest, ok = strings.Cut(inside, ">")
	} else if head, text, found := strings.Cut(s, ";"); found {
		if strings.Count(head, ",") >= 3 {
			number, _, _ = strings.Cut(head, ",")
			rest, ok = text, true
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
	// dmesg --show-delta and --reltime add "<    0.000003>" or "+0.000003".
	digits := strings.Contains(s, ":") || strings.Trim(s, "0123456789.<>+ ") == ""
	if !digits && len(s) > 1 && (s[0] == 'T' || s[0] == 'C') { // thread or CPU
		digits = strings.Trim(s[1:], "0123456789") == ""
	}
	if !digits || len(s) == 0 || len(s) > 40 {
		return false
	}
	return strings.ContainsAny(s, "0123456789") && strings.Trim(s, "0123456789") != "" && !strings.ContainsAny(s, `"()=`) &&
		!strings.HasSuffix(s, ":")
}

// stampOf finds the time in a piece of a prefix; thread marks are none.
func stampOf(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") {
		s = strings.TrimSpace(strings.Trim(s, "[]: "))
		if s == "..." || strings.HasPrefix(s, "T") && !strings.Contains(s, ":") || strings.HasPrefix(s, "C") {
			return ""
		}
		return clean(s)
	}
	fields := strings.Fields(s)
	for i, f := range fields[:min(len(fields), 4)] {
		switch {
		case strings.Count(f, ":") < 2 || strings.Trim(f, "0123456789:.,TZ+-") != "":
		case strings.Contains(f, "-") || i == 0:
			return clean(f) // ISO, or a time of day
		default:
			return clean(strings.Join(fields[:i+1], " ")) // Mar  5 19:54:38
		}
	}
	return ""
}

// withoutColour removes terminal colours, "\x1b[33m".
func withoutColour(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
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
