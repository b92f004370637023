//go:build cgo

package main

import (
	"context"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/xid"
)

// openKernel opens the kernel log behind record after; 0 is its beginning.
func openKernel(fs host.FS, after uint64, now time.Time) (*host.KernelLog, error) {
	boot, err := fs.BootTime(now)
	if err != nil {
		return nil, err
	}
	k, err := host.OpenKernelLog(fs, boot)
	if err != nil {
		return nil, err
	}
	if after > 0 {
		k.SeekAfter(after)
	}
	return k, nil
}

// kernelRead is one read of the kernel log, with what only this process needs.
type kernelRead struct {
	driver.Kernel
	gaps []host.Overrun
	last uint64 // time of the last record, microseconds since boot; 0 when none was read
}

// readKernel reads the driver's messages in the kernel log after a record.
func readKernel(fs host.FS, after uint64, cards []gpu.ProcGPU, now time.Time) kernelRead {
	k := kernelRead{Kernel: driver.Kernel{LastSeq: after}}
	log, err := openKernel(fs, after, now)
	if err != nil {
		k.Fault = kmsgFault(err)
		return k
	}
	defer log.Close()
	var p xid.Parser
	b, err := xid.Scan(log, &p)
	if err != nil {
		k.Fault = kmsgFault(err)
	}
	xid.Assign(b.Events, xid.UUIDs(cards, nil))
	k.Events, k.Lost, k.Loaded, k.Probed, k.gaps, k.last = b.Events, b.Lost, b.Loaded, b.Probed, b.Gaps, b.Last
	k.LastSeq = max(b.LastSeq, after)
	return k
}

func kmsgFault(err error) *gpu.Fault {
	f := host.PathFault("/dev/kmsg", err)
	return &f
}

// closeGaps remembers how far the kernel log was read. Where records were lost the
// journal is asked beside everything else, and a better line follows if it knew
// them; asked is closed when nothing more will come.
func (o readOptions) closeGaps(k *kernelRead, fs host.FS, bootID string, cards []gpu.ProcGPU, out *lines, now time.Time, asked chan bool) {
	file := marksFile(o.identity)
	known := loadMarks(file, bootID)
	// Without it the next gap cannot be closed, no more.
	_ = known.save(file, k.LastSeq, k.last, o.after)
	if o.journal == "" || len(k.gaps) == 0 {
		close(asked)
		return
	}
	go out.guard("journal", func() {
		defer close(asked)
		boot, err := fs.BootTime(now)
		if err == nil && k.ask(journal(o.journal), known.time(o.after), o.after, cards, boot) {
			out.put(driver.Line{Kernel: &k.Kernel})
		}
	})
}

// waitForJournal waits for an answer that may still come. A journalctl that does
// not even die is left behind.
func waitForJournal(asked <-chan bool) {
	select {
	case <-asked:
	case <-time.After(journalTime + 200*time.Millisecond):
	}
}

// ask closes the gaps of a read as far as the journal knows what was lost, and
// says whether it knew anything. The record after was written at that time; 0:
// not known.
func (k *kernelRead) ask(j journal, at, after uint64, cards []gpu.ProcGPU, boot time.Time) bool {
	ctx, cancel := context.WithTimeout(context.Background(), journalTime)
	defer cancel()
	before := k.Lost
	var c xid.Collector
	for _, g := range k.gaps {
		if g.Since == 0 && g.Next == after+1+g.Lost { // the gap is behind the record at which an earlier look ended
			g.Since = at
		}
		got := j.fill(ctx, g, boot)
		k.Lost -= g.Lost - min(got.lost, g.Lost)
		xid.Assign(got.events, xid.UUIDs(cards, nil))
		for _, e := range got.events {
			c.Add(e)
		}
		if at, ok := got.loaded.Get(); ok && at > k.Loaded.Or(0) {
			k.Loaded = got.loaded
		}
	}
	for _, e := range k.Events {
		c.Add(e)
	}
	k.Events = c.Events()
	k.Lost += uint64(c.Dropped())
	return k.Lost < before
}
