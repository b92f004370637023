//go:build cgo

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/xid"
)

// Bounds on what the journal may take and say.
const (
	journalTime  = 2 * time.Second
	journalBytes = 32 << 20
	journalLine  = 64 << 10
	clockSlack   = 10 * time.Second // the journal's --since goes by its own clock
)

// journal is journalctl, which has read the kernel log, too: what was overwritten
// before we read it may stand there. "" asks nobody.
type journal string

// filled is what the journal knew of a gap.
type filled struct {
	events []xid.Event
	loaded gpu.Opt[uint64] // record with which the driver was loaded, if in it
	lost   uint64          // records that the journal does not have either
}

// fill asks for the records between two that were read. The journal knows no
// numbers, so that the time that the kernel wrote into each record decides, and
// their count says whether all are there: nothing is counted twice.
func (j journal) fill(ctx context.Context, g host.Overrun, boot time.Time) filled {
	out := filled{lost: g.Lost}
	if j == "" || g.Since == 0 || g.Until <= g.Since {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, journalTime)
	defer cancel()
	since := boot.Add(time.Duration(g.Since)*time.Microsecond - clockSlack)
	cmd := exec.CommandContext(ctx, string(j), "-k", "-b", "-o", "json", "--no-pager",
		"--output-fields=MESSAGE,_TRANSPORT,SYSLOG_FACILITY,_SOURCE_MONOTONIC_TIMESTAMP", fmt.Sprintf("--since=@%d", since.Unix()))
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	stdout, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return out
	}
	found := readJournal(io.LimitReader(stdout, journalBytes), g, boot)
	// What was read counts, however it ended: the count says whether it is all.
	_ = cmd.Cancel()
	_ = cmd.Wait()
	return found
}

// readJournal takes the records of a gap from the journal's lines.
func readJournal(r io.Reader, g host.Overrun, boot time.Time) filled {
	var kept []host.KernelRecord // Seq: place in the gap
	in := bufio.NewReaderSize(r, journalLine)
	n, long := uint64(0), false
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = true // no record of the driver is so long; it is missed in the count
			continue
		}
		if rec, ok := xid.JournalRecord(line, boot); ok && !long {
			if rec.MonotonicUsec >= g.Until {
				break
			}
			if rec.MonotonicUsec > g.Since {
				if xid.Relevant([]byte(rec.Text)) {
					rec.Seq = n
					kept = append(kept, rec)
				}
				n++
			}
		}
		long = false
		if err != nil {
			break
		}
	}
	n = min(n, g.Lost)
	out := filled{lost: g.Lost - n}
	var p xid.Parser
	var c xid.Collector
	for _, rec := range kept {
		rec.Seq += g.Next - n // the last of them stands before the gap's end
		if e, ok := p.Add(rec); ok {
			c.Add(e)
		}
	}
	out.events, out.loaded = c.Events(), p.Loaded()
	out.lost += uint64(c.Dropped())
	return out
}
