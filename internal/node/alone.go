package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// holder is what whoever holds a lock writes into it.
type holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"` // he is done by then
}

// Alone takes the lock of a program of which only one may run at a time, without
// waiting; limit is how long this one may take. alone is false while another one
// runs; release is to be called otherwise. The lock goes with its holder. One that
// still has it after his limit is frozen, and nobody waits for him; a lock that
// cannot be taken at all is no reason not to run either. err tells of both.
func (s Store) Alone(name string, limit time.Duration, now time.Time) (release func(), alone bool, err error) {
	free := func() {}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return free, true, err
	}
	f, err := os.OpenFile(s.path(name), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return free, true, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return free, true, fmt.Errorf("%s: %w", s.path(name), err)
		}
		var h holder
		b, err := io.ReadAll(io.LimitReader(f, 4096))
		if err == nil && json.Unmarshal(b, &h) == nil && now.After(h.Until) {
			return free, true, fmt.Errorf("%s: held by process %d since %s: going on without it", s.path(name), h.PID, h.Since.UTC().Format(time.RFC3339))
		}
		return free, false, nil
	}
	release = func() { f.Close() }
	b, err := json.Marshal(holder{os.Getpid(), now.UTC(), now.Add(limit).UTC()})
	if err != nil {
		return release, true, err
	}
	// Written in place: a lock belongs to its inode.
	if err := f.Truncate(0); err != nil {
		return release, true, fmt.Errorf("%s: %w", s.path(name), err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		return release, true, fmt.Errorf("%s: %w", s.path(name), err)
	}
	return release, true, nil
}
