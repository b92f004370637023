//go:build e2e

package detect

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// fault is one thing that breaks on a node that was well a moment ago.
type fault struct {
	what    string       // as the table says it
	profile string       // of the simulator; "" is dgx-h100
	toml    string       // more configuration
	before  func(*world) // how the node differs from its profile from the start
	inject  func(*world)
	check   string // which finds it; "" is that nothing may be found

	baseline bool // learnt from the well node
}

// set changes keys of the scenario.
func set(kv ...string) func(*world) {
	return func(w *world) { w.Must(w.Set(kv...)) }
}

// xid writes the driver's line for a code on GPU 3.
func xid(code int) func(*world) {
	return func(w *world) { w.Must(w.Xid(3, code, "")) }
}

// log writes lines to the kernel log.
func log(lines ...string) func(*world) {
	return func(w *world) {
		for _, l := range lines {
			w.Must(w.KernelLog(l))
		}
	}
}

// remove takes a file of the node away.
func remove(path string) func(*world) {
	return func(w *world) { w.Must(os.RemoveAll(w.Root() + "/" + path)) }
}

// storm is many lines at once.
func storm(n int, line string) func(*world) {
	return func(w *world) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "4,%d,900000000,-;%s\n", 500_000+i, line)
		}
		w.kmsg(b.String())
	}
}

// record writes one record to the kernel log. Below priority 8 it is the
// kernel's own; what a program writes cannot be.
func (w *world) record(priority, seq int, at time.Duration, line string) {
	w.kmsg(fmt.Sprintf("%d,%d,%d,-;%s\n", priority, seq, at.Microseconds(), line))
}

func (w *world) kmsg(text string) {
	f, err := os.OpenFile(w.Root()+"/dev/kmsg", os.O_APPEND|os.O_WRONLY, 0)
	w.Must(err)
	_, err = f.WriteString(text)
	w.Must(err)
	w.Must(f.Close())
}
