package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// BootID returns the kernel's random boot id. A simulated root without one runs
// on the machine's own kernel, and so has the machine's boot.
func (f FS) BootID() (string, error) {
	const path = "proc/sys/kernel/random/boot_id"
	id, err := f.value(path)
	if errors.Is(err, fs.ErrNotExist) && f != "/" {
		id, err = FS("/").value(path)
	}
	if err != nil {
		return "", err
	}
	if len(id) != 36 {
		return "", fmt.Errorf("boot id %q has not the form of one", id)
	}
	return id, nil
}

// BootTime returns when the kernel started: now less the monotonic clock, by
// which the kernel log is timed, or the btime of a simulated root's proc/stat.
func (f FS) BootTime(now time.Time) (time.Time, error) {
	if f != "/" {
		if b, err := f.read(largeFile, "proc/stat"); err == nil {
			return parseBootTime(b)
		}
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return time.Time{}, fmt.Errorf("monotonic clock: %w", err)
	}
	return now.Add(-time.Duration(ts.Nano())), nil
}

// parseBootTime finds btime, in seconds since 1970, in /proc/stat.
func parseBootTime(stat []byte) (time.Time, error) {
	for line := range strings.Lines(string(stat)) {
		if s, ok := strings.CutPrefix(line, "btime "); ok {
			sec, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
			if err != nil {
				return time.Time{}, fmt.Errorf("btime: %w", err)
			}
			return time.Unix(sec, 0).UTC(), nil
		}
	}
	return time.Time{}, errors.New("no btime in proc/stat")
}
