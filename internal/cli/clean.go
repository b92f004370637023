package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLine bounds one message, bytes. Names, paths and comments come from
// outside and may be as long as somebody likes.
const maxLine = 2000

// Clean makes text from outside safe for a log and a terminal: one line, no
// control or formatting characters, valid UTF-8, at most 2000 bytes.
func Clean(s string) string {
	cut := false
	if len(s) > maxLine {
		s, cut = s[:maxLine], true
		// The last rune may have lost its tail: up to three bytes.
		for range utf8.UTFMax - 1 {
			if r, n := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && n == 1 {
				s = s[:len(s)-1]
			}
		}
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
	if cut {
		s += "…"
	}
	return strings.TrimSpace(s)
}
