//go:build cgo

package main

import (
	"os"

	"gpuhooks/internal/runs"
)

// spooler writes checkpoints into the spool, from which a run is finished
// should the node crash. The spool may lie on a disk that hangs, so a goroutine
// of its own writes, and what comes while it is busy is left out.
type spooler struct{ work chan checkpoint }

type checkpoint struct {
	name runs.Name
	data []byte
}

func newSpooler(spool string, stopped <-chan struct{}) *spooler {
	s := &spooler{work: make(chan checkpoint, 32)}
	dir := runs.CheckpointsIn(spool)
	go func() {
		for {
			select {
			case c := <-s.work:
				// A checkpoint that cannot be written is missed only after a crash.
				if err := os.MkdirAll(string(dir), 0o700); err == nil {
					_ = runs.WriteFile(dir.Path(c.name), c.data)
				}
			case <-stopped:
				return
			}
		}
	}()
	return s
}

// put hands a checkpoint over without waiting.
func (s *spooler) put(name runs.Name, data []byte) {
	select {
	case s.work <- checkpoint{name, data}:
	default:
	}
}
