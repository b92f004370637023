package xid

import (
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
)

// readDetail reads from the text what some codes say beyond their number.
func (e *Event) readDetail() {
	switch {
	case e.Code == 45:
		e.CausedBy = causedBy(e.Text)
	case e.Code == 94 || e.Code == 95:
		e.Reset, e.DrainReset = resetWords(e.Text)
	case e.Code == 154:
		e.From, e.To = recoveryChange(e.Text)
	case e.Code >= 144 && e.Code <= 150:
		e.Link = linkReport(e.Text)
	}
}

// causedBy reads the "… caused by previous Xid 149" at the end of a 45.
func causedBy(s string) int {
	const words = "caused by previous Xid "
	i := strings.LastIndex(s, words)
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(s[i+len(words):])
	if err != nil || n < 1 || n > maxCode {
		return 0
	}
	return n
}

// resetWords reads the "RST: Yes, D-RST: No" at the end: is a reset needed, or
// one after draining. The lines that repeat an event for each channel have none.
func resetWords(s string) (reset, drain gpu.Opt[bool]) {
	i := strings.LastIndex(s, "D-RST: ")
	if i < 0 {
		return reset, drain
	}
	drain = yesNo(strings.TrimRight(s[i+len("D-RST: "):], ". "))
	head := strings.TrimRight(s[:i], ",; ")
	if i = strings.LastIndex(head, "RST: "); i >= 0 {
		reset = yesNo(head[i+len("RST: "):])
	}
	return reset, drain
}

func yesNo(s string) gpu.Opt[bool] {
	switch s {
	case "Yes":
		return gpu.Some(true)
	case "No":
		return gpu.Some(false)
	}
	return gpu.Opt[bool]{}
}

// recoveryChange reads "GPU recovery action changed from 0x0 (None) to 0x1 (GPU
// Reset Required)", or "… 0x0 -> 0x2 …". The names differ between drivers, so
// the numbers count.
func recoveryChange(s string) (from, to gpu.Opt[int]) {
	i, skip := strings.LastIndex(s, " to 0x"), len(" to ")
	if k := strings.LastIndex(s, "-> 0x"); k > i {
		i, skip = k, len("-> ")
	}
	if i < 0 {
		return from, to
	}
	to = hexNumber(s[i+skip:])
	if k := strings.LastIndex(s[:i], "0x"); k >= 0 {
		from = hexNumber(s[k:])
	}
	return from, to
}

// hexNumber reads the 0x… that s begins with.
func hexNumber(s string) gpu.Opt[int] {
	word := strings.TrimPrefix(s, "0x")
	if i := strings.IndexAny(word, " (),"); i >= 0 {
		word = word[:i]
	}
	n, err := strconv.ParseUint(word, 16, 31)
	if err != nil {
		return gpu.Opt[int]{}
	}
	return gpu.Some(int(n))
}

// linkReport reads "RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000040 …)".
// Words is false where the words are missing or cut.
func linkReport(s string) *LinkReport {
	r := &LinkReport{}
	head, words, whole := strings.Cut(s, "(")
	fields := strings.Fields(head)
	for i, f := range fields {
		switch f {
		case "Fatal", "Nonfatal":
			r.Unit = strings.Join(fields[:i], " ")
			r.Fatal = gpu.Some(f == "Fatal")
		case "Link":
			if i+1 < len(fields) {
				if n, err := strconv.Atoi(fields[i+1]); err == nil {
					r.Link = gpu.Some(n)
				}
			}
		}
	}
	words, _, closed := strings.Cut(words, ")")
	list := strings.Fields(words)
	if !whole || !closed || len(list) < 2 {
		return r
	}
	info, err1 := strconv.ParseUint(list[0], 0, 32)
	status, err2 := strconv.ParseUint(list[1], 0, 32)
	if err1 == nil && err2 == nil {
		r.Info, r.Status, r.Words = uint32(info), uint32(status), true
	}
	return r
}
