package record

import (
	"strings"
	"unicode"
)

// maxText bounds a string from outside.
const maxText = 512

// Clean makes a string from outside safe for a terminal, a log line and line
// protocol: what is not printable (escape sequences, line breaks, direction
// marks) becomes '?', and it is cut to 512 bytes.
func Clean(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	s = strings.Map(func(r rune) rune {
		if r != ' ' && (!unicode.IsPrint(r) || r == unicode.ReplacementChar) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.TrimSpace(s)
}
