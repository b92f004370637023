package cli

import (
	"runtime/debug"
	"strings"
)

// Hook runs what Slurm started and returns 0 or 1. Only the verdict may be 1: a
// panic is our fault and not the node's, so it is logged and counts as 0.
func Hook(log *Log, run func() int) (code int) {
	defer func() {
		if v := recover(); v != nil {
			logPanic(log, v)
			code = OK
		}
	}()
	if run() != OK {
		return Failed
	}
	return OK
}

// Go runs f in a goroutine. A panic in it is logged and ends only f: it would
// otherwise end the process with a status that drains the node.
func Go(log *Log, f func()) {
	go func() {
		defer func() {
			if v := recover(); v != nil {
				logPanic(log, v)
			}
		}()
		f()
	}()
}

// logPanic says what happened and where, in a few lines.
func logPanic(log *Log, v any) {
	log.Errorf("internal fault: %v", v)
	lines := strings.Split(string(debug.Stack()), "\n")
	for _, l := range lines[:min(len(lines), 40)] {
		if strings.HasPrefix(l, "\t") && strings.Contains(l, "gpuhooks/") || strings.HasPrefix(l, "gpuhooks/") || strings.HasPrefix(l, "main.") {
			log.Errorf("internal fault: at %s", strings.TrimSpace(l))
		}
	}
}
