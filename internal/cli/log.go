package cli

import (
	"fmt"
	"io"
	"sync"
)

// Log writes lines to stderr: slurmd copies a hook's into its own log. Lines are
// `program: message`, cleaned and bounded. It may be used from goroutines.
type Log struct {
	mu   sync.Mutex
	w    io.Writer
	name string
}

// NewLog logs to the environment's stderr under the program's name.
func NewLog(env Env) *Log { return &Log{w: env.Stderr, name: env.Program} }

// Infof says something that is worth a line.
func (l *Log) Infof(format string, args ...any) { l.line("", format, args) }

// Warnf says what is not as it should be and has no consequence.
func (l *Log) Warnf(format string, args ...any) { l.line("warning: ", format, args) }

// Errorf says what failed: what: which: why.
func (l *Log) Errorf(format string, args ...any) { l.line("error: ", format, args) }

// Hintf says what a person can do about the line before.
func (l *Log) Hintf(format string, args ...any) { l.line("hint: ", format, args) }

func (l *Log) line(kind, format string, args []any) {
	s := l.name + ": " + kind + Clean(fmt.Sprintf(format, args...)) + "\n"
	l.mu.Lock()
	defer l.mu.Unlock()
	// A log that cannot be written has no other place to say so.
	_, _ = io.WriteString(l.w, s)
}
