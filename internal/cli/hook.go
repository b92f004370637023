package cli

import (
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Decision is what a hook will answer if its time is up before it returns: 0
// until Refuse.
type Decision struct{ code atomic.Int32 }

// Refuse says that the verdict is 1, whether or not what is still to be done
// comes to its end.
func (d *Decision) Refuse() { d.code.Store(Failed) }

// Accept takes Refuse back.
func (d *Decision) Accept() { d.code.Store(OK) }

// Hook runs what Slurm started and returns 0 or 1 within the limit. Only the
// verdict may be 1: a panic is our fault and not the node's, so it is logged and
// counts as what had been decided before it.
func Hook(log *Log, limit time.Duration, run func(*Decision) int) int {
	// A reader of our log that goes away must not take us with it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	var d Decision
	ended := make(chan int, 1)
	go func() {
		code := int(d.code.Load())
		defer func() {
			if v := recover(); v != nil {
				logPanic(log, v)
				code = int(d.code.Load())
			}
			ended <- code
		}()
		code = run(&d)
	}()
	code := OK
	select {
	case code = <-ended:
	case <-time.After(limit):
		code = int(d.code.Load())
		// The log may be what hangs.
		said := make(chan bool)
		Go(log, func() {
			defer close(said)
			log.Errorf("not finished after %s: leaving with what was decided", limit)
		})
		select {
		case <-said:
		case <-time.After(50 * time.Millisecond):
		}
	}
	if code != OK {
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
