package host

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/gpu"
)

// SimulatedClock is the file in which a simulated root says what adjtimex would:
// "synchronised 0.0005" or "unsynchronised 16", the number being the largest
// error in seconds. The machine's own clock is not the simulated node's, so
// that without the file nothing is known of it. It is never read below "/".
const SimulatedClock = "sim/clock"

// Clock asks the kernel whether something disciplines the clock (adjtimex).
func (f FS) Clock() (gpu.Opt[gpu.Clock], error) {
	if f != "/" {
		s, err := f.value(SimulatedClock)
		if errors.Is(err, fs.ErrNotExist) {
			return gpu.Opt[gpu.Clock]{}, nil
		}
		if err != nil {
			return gpu.Opt[gpu.Clock]{}, err
		}
		c, err := parseClock(s)
		return gpu.Some(c), err
	}
	var t unix.Timex // asks and sets nothing
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return gpu.Opt[gpu.Clock]{}, fmt.Errorf("adjtimex: %w", err)
	}
	return gpu.Some(clockOf(state, t.Status, int64(t.Maxerror))), nil
}

// clockOf reads adjtimex's answer; maxError is in microseconds.
func clockOf(state int, status int32, maxError int64) gpu.Clock {
	const unsynchronised = 0x40 // STA_UNSYNC
	return gpu.Clock{
		Synchronised: state != unix.TIME_ERROR && status&unsynchronised == 0,
		MaxError:     (time.Duration(maxError) * time.Microsecond).Seconds(),
	}
}

func parseClock(s string) (gpu.Clock, error) {
	var word string
	var c gpu.Clock
	if _, err := fmt.Sscan(s, &word, &c.MaxError); err != nil {
		return c, fmt.Errorf("%s: %q: %w", SimulatedClock, s, err)
	}
	c.Synchronised = word == "synchronised"
	return c, nil
}
