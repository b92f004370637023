package slurmconf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of a host list. Slurm's own limit is 64 k names an expression; the
// others only keep a typing error from costing memory or time.
const (
	maxHosts    = 65536
	maxBrackets = 8
	maxDigits   = 9
	maxListText = 1 << 20
)

// HostList is a parsed Slurm host list: names with any number of bracketed
// ranges, separated by commas: "c-r3i[4-7]n[0-8],login,n[001-128]". File= in
// gres.conf uses the same grammar.
type HostList struct {
	terms []hostTerm
}

// hostTerm is one name of a list, cut at its brackets.
type hostTerm []hostPart

// hostPart is either literal text or the ranges of one bracket.
type hostPart struct {
	text  string
	spans []span
}

// span is one range of a bracket. width is the number of digits to which its
// values are zero padded.
type span struct {
	lo, hi uint64
	width  int
}

// ParseHostList parses s. Blank items ("a,,b", a comma at the end) are dropped.
func ParseHostList(s string) (HostList, error) {
	var h HostList
	if len(s) > maxListText {
		return h, errors.New("host list is too long")
	}
	items, err := splitOutsideBrackets(s)
	if err != nil {
		return h, err
	}
	for _, item := range items {
		t, err := parseHostTerm(item)
		if err != nil {
			return HostList{}, fmt.Errorf("host list %q: %w", clip(item), err)
		}
		h.terms = append(h.terms, t)
	}
	if h.Len() > maxHosts {
		return HostList{}, fmt.Errorf("host list names more than %d hosts", maxHosts)
	}
	return h, nil
}

// splitOutsideBrackets cuts at commas and blanks that are not inside brackets.
func splitOutsideBrackets(s string) ([]string, error) {
	var items []string
	depth, start := 0, 0
	cut := func(end int) {
		if end > start {
			items = append(items, s[start:end])
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0 && (c == ',' || c == ' ' || c == '\t'):
			cut(i)
			start = i + 1
		}
		if depth < 0 || depth > 1 {
			return nil, fmt.Errorf("host list %q: brackets do not match", clip(s))
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("host list %q: brackets do not match", clip(s))
	}
	cut(len(s))
	return items, nil
}

func parseHostTerm(s string) (hostTerm, error) {
	var t hostTerm
	for brackets := 0; s != ""; brackets++ {
		open := strings.IndexByte(s, '[')
		if open < 0 {
			return append(t, hostPart{text: s}), nil
		}
		if brackets == maxBrackets {
			return nil, fmt.Errorf("more than %d brackets", maxBrackets)
		}
		if open > 0 {
			t = append(t, hostPart{text: s[:open]})
		}
		end := strings.IndexByte(s, ']')
		spans, err := parseSpans(s[open+1 : end])
		if err != nil {
			return nil, err
		}
		t = append(t, hostPart{spans: spans})
		s = s[end+1:]
	}
	return t, nil
}

func parseSpans(s string) ([]span, error) {
	var spans []span
	for _, r := range strings.Split(s, ",") {
		lo, hi, ranged := strings.Cut(r, "-")
		if !ranged {
			hi = lo
		}
		a, err1 := parseDigits(lo)
		b, err2 := parseDigits(hi)
		switch {
		case err1 != nil || err2 != nil:
			return nil, fmt.Errorf("%q is not a range of numbers", clip(r))
		case b < a:
			return nil, fmt.Errorf("range %q runs backwards", clip(r))
		case b-a >= maxHosts:
			return nil, fmt.Errorf("range %q is too long", clip(r))
		}
		spans = append(spans, span{lo: a, hi: b, width: len(lo)})
		if len(spans) > maxHosts {
			return nil, errors.New("too many ranges")
		}
	}
	return spans, nil
}

func parseDigits(s string) (uint64, error) {
	if s == "" || len(s) > maxDigits || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("not a number")
	}
	return strconv.ParseUint(s, 10, 64)
}

func (s span) format(v uint64) string { return fmt.Sprintf("%0*d", s.width, v) }

// Len is how many names the list holds, repetitions counted; it stops counting
// a little above 65536.
func (h HostList) Len() int {
	n := 0
	for _, t := range h.terms {
		if n += t.len(); n > maxHosts {
			return n
		}
	}
	return n
}

func (t hostTerm) len() int {
	n := 1
	for _, p := range t {
		if p.spans == nil {
			continue
		}
		sum := uint64(0)
		for _, s := range p.spans {
			sum += s.hi - s.lo + 1
		}
		if n *= int(min(sum, maxHosts+1)); n > maxHosts {
			return maxHosts + 1
		}
	}
	return n
}

// Expand returns the names in the order in which they are written.
func (h HostList) Expand() []string {
	var out []string
	for _, t := range h.terms {
		out = append(out, t.expand()...)
	}
	return out
}

func (t hostTerm) expand() []string {
	names := []string{""}
	for _, p := range t {
		if p.spans == nil {
			for i := range names {
				names[i] += p.text
			}
			continue
		}
		var next []string
		for _, n := range names {
			for _, s := range p.spans {
				for v := s.lo; v <= s.hi; v++ {
					next = append(next, n+s.format(v))
				}
			}
		}
		names = next
	}
	return names
}

// Has says whether name is in the list, without expanding it.
func (h HostList) Has(name string) bool {
	for _, t := range h.terms {
		if t.match(name) {
			return true
		}
	}
	return false
}

func (t hostTerm) match(name string) bool {
	if len(t) == 0 {
		return name == ""
	}
	p := t[0]
	if p.spans == nil {
		rest, ok := strings.CutPrefix(name, p.text)
		return ok && t[1:].match(rest)
	}
	for n := 1; n <= len(name) && n <= maxDigits && name[n-1] >= '0' && name[n-1] <= '9'; n++ {
		if inSpans(p.spans, name[:n]) && t[1:].match(name[n:]) {
			return true
		}
	}
	return false
}

func inSpans(spans []span, digits string) bool {
	v, err := parseDigits(digits)
	if err != nil {
		return false
	}
	for _, s := range spans {
		if v >= s.lo && v <= s.hi && s.format(v) == digits {
			return true
		}
	}
	return false
}

// clip shortens text from a file for a message.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
