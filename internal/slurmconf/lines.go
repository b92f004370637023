// Package slurmconf reads what Slurm reads: slurm.conf, gres.conf, host lists
// and the output of slurmd -G. Parsing is pure; the readers open local regular
// files only and never call Slurm.
package slurmconf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of a configuration with all files that it includes.
const (
	maxFileBytes = 8 << 20
	maxIncludes  = 256
	maxDepth     = 10
)

// Pair is one Key=Value of a line. The key is as written; Slurm ignores its case.
type Pair struct{ Key, Value string }

// Line is one logical line of a configuration file, after comments and
// continuations. No is the number of its first physical line.
type Line struct {
	File  string
	No    int
	Pairs []Pair
}

// Get returns the value of the last pair with that key, whatever its case.
func (l Line) Get(key string) (string, bool) {
	for i := len(l.Pairs) - 1; i >= 0; i-- {
		if strings.EqualFold(l.Pairs[i].Key, key) {
			return l.Pairs[i].Value, true
		}
	}
	return "", false
}

// Problem is one thing wrong with a configuration file.
type Problem struct {
	File string
	Line int    // 1-based; 0 when the whole file is meant
	Key  string // as written; "" when no key is concerned
	Text string
}

// Error is "file:line: key: text".
func (p *Problem) Error() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
	}
	if p.Key != "" {
		s += ": " + p.Key
	}
	return s + ": " + p.Text
}

func (l Line) problem(key, format string, args ...any) error {
	return &Problem{File: l.File, Line: l.No, Key: key, Text: fmt.Sprintf(format, args...)}
}

// loader collects the lines of a file and of those it includes. read is nil
// when includes must not be followed.
type loader struct {
	read     func(path string) ([]byte, error)
	dir      string // of the first file; relative includes start there
	cluster  string // for %c in include paths
	included int
	lines    []Line
	errs     []error
}

func (l *loader) load(file string, data []byte, depth int) {
	for no, text := range logicalLines(string(data)) {
		if path, ok := includeOf(text); ok {
			l.include(file, no, path, depth)
			continue
		}
		pairs, rest := parsePairs(text)
		line := Line{File: file, No: no, Pairs: pairs}
		if rest != "" {
			l.errs = append(l.errs, line.problem("", "%q is not key=value", clip(rest)))
		}
		if len(pairs) == 0 {
			continue
		}
		if v, ok := line.Get("ClusterName"); ok {
			l.cluster = v
		}
		l.lines = append(l.lines, line)
	}
}

func (l *loader) include(file string, no int, path string, depth int) {
	at := Line{File: file, No: no}
	l.included++
	switch {
	case l.read == nil:
		return
	case depth == maxDepth || l.included > maxIncludes:
		l.errs = append(l.errs, at.problem("Include", "too many files are included"))
		return
	}
	path = strings.ReplaceAll(path, "%c", l.cluster)
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.dir, path)
	}
	data, err := l.read(path)
	if err != nil {
		l.errs = append(l.errs, at.problem("Include", "%v", err))
		return
	}
	l.load(path, data, depth+1)
}

// logicalLines yields line number and text of every line that is not empty
// once its comment is gone, joined where a backslash ends it. A comment is cut
// first, as Slurm does: a backslash inside one continues nothing.
func logicalLines(data string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		var joined strings.Builder
		first := 0
		for i, raw := range strings.Split(data, "\n") {
			if first == 0 {
				first = i + 1
			}
			text, more := cutContinuation(cutComment(strings.TrimRight(raw, "\r")))
			joined.WriteString(text)
			if more {
				continue
			}
			line := strings.TrimSpace(joined.String())
			no := first
			joined.Reset()
			first = 0
			if line != "" && !yield(no, line) {
				return
			}
		}
		if line := strings.TrimSpace(joined.String()); line != "" {
			yield(first, line)
		}
	}
}

// cutComment drops everything from the first # that no backslash protects.
func cutComment(s string) string {
	backslashes := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '#':
			if backslashes%2 == 0 {
				return s[:i]
			}
			backslashes = 0
		case '\\':
			backslashes++
		default:
			backslashes = 0
		}
	}
	return s
}

func cutContinuation(s string) (string, bool) {
	t := strings.TrimRight(s, " \t")
	n := len(t) - len(strings.TrimRight(t, `\`))
	if n%2 == 0 {
		return s, false
	}
	return t[:len(t)-1], true
}

func includeOf(text string) (string, bool) {
	const word = "include"
	if len(text) <= len(word) || !strings.EqualFold(text[:len(word)], word) {
		return "", false
	}
	path := strings.TrimSpace(text[len(word):])
	if c := text[len(word)]; (c != ' ' && c != '\t') || path == "" || path[0] == '=' {
		return "", false
	}
	return strings.Trim(path, `"`), true
}

// parsePairs reads Key=Value, Key = Value, Key+=Value and Key="two words" as
// Slurm's expression does. rest is what does not fit it.
func parsePairs(text string) (pairs []Pair, rest string) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		n := 0
		for n < len(text) && isKeyByte(text[n]) {
			n++
		}
		after := strings.TrimLeft(text[n:], " \t")
		if after != "" && strings.IndexByte("+-*/", after[0]) >= 0 {
			after = after[1:]
		}
		if n == 0 || after == "" || after[0] != '=' {
			return pairs, text
		}
		value, tail, ok := cutValue(strings.TrimLeft(after[1:], " \t"))
		if !ok {
			return pairs, text
		}
		pairs = append(pairs, Pair{Key: text[:n], Value: unescape(value)})
		text = tail
	}
	return pairs, ""
}

func cutValue(s string) (value, tail string, ok bool) {
	if s == "" {
		return "", "", false
	}
	if s[0] == '"' {
		end := strings.IndexByte(s[1:], '"')
		if end < 0 {
			return "", "", false
		}
		return s[1 : 1+end], s[end+2:], true
	}
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], s[i:], true
	}
	return s, "", true
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isKeyByte(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// readLocal reads a regular file of bounded size. A FIFO or device where a
// configuration file should be must not block a hook.
func readLocal(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", path)
	case st.Size() > maxFileBytes:
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxFileBytes)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes))
}

// readAll reads a file and what it includes.
func readAll(path string) ([]Line, error) {
	data, err := readLocal(path)
	if err != nil {
		return nil, err
	}
	l := loader{read: readLocal, dir: filepath.Dir(path)}
	l.load(path, data, 0)
	return l.lines, errors.Join(l.errs...)
}

// parseAll parses one file's text without following its includes.
func parseAll(name string, data []byte) ([]Line, error) {
	l := loader{}
	l.load(name, data, 0)
	return l.lines, errors.Join(l.errs...)
}
