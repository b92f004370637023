package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxFile bounds what is read of a state file.
const maxFile = 16 << 20

// errBroken is a state file that is not whole or not ours.
var errBroken = errors.New("half-written or not ours")

// readJSON reads a state file.
func readJSON(path string, v any) error {
	b, err := readFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w: %w", path, errBroken, err)
	}
	return nil
}

// readFile reads a state file whole. Anything but a plain file is not opened: a
// directory or a FIFO of that name must not stop a hook.
func readFile(path string) ([]byte, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil, fmt.Errorf("%s: %w", path, errBroken)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// writeJSON replaces a state file that lives no longer than the boot.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return Replace(path, append(b, '\n'), 0o600, false)
}

// Replace writes a file by rename, so that a reader sees all of the old or all of
// the new. A durable one is on the disk when Replace returns.
func Replace(path string, b []byte, mode fs.FileMode, durable bool) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the first error is the one to report
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(b); err != nil {
		return err
	}
	if mode != 0o600 {
		if err = f.Chmod(mode); err != nil {
			return err
		}
	}
	if durable {
		if err = f.Sync(); err != nil {
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// errBusy says that a lock was not to be had in time.
var errBusy = errors.New("held by another process")

// lock takes a file's lock, waiting at most so long: a holder may hang. The lock
// goes with its holder, so that a dead one holds nothing. stop, where it is not
// nil, is asked now and then and ends the waiting with errBusy.
func lock(path string, wait time.Duration, stop func() bool) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(wait)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if time.Now().After(until) || stop != nil && stop() {
			f.Close()
			return nil, fmt.Errorf("%s: %w", path, errBusy)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
