package node

import (
	"context"
	"fmt"
	"os"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
)

// readingSchema is the format of reading.json.
const readingSchema = "gpuhooks.reading/1"

// sharedReading is reading.json: the last reading of whichever hook took it.
type sharedReading struct {
	Schema  string         `json:"schema"`
	BootID  string         `json:"boot_id"`
	Tier    int            `json:"tier"`
	After   uint64         `json:"after"` // kernel log read behind this record
	Reading driver.Reading `json:"reading"`
}

// prober asks the probe once.
type prober func(ctx context.Context, req driver.Request) driver.Reading

// wanted is what a hook needs of a reading that it shares.
type wanted struct {
	boot   string
	tier   int
	after  uint64
	host   bool          // with what surrounds the GPUs
	dirs   []string      // that must be writable
	asked  time.Time     // a reading that began later is as good as one's own
	maxAge time.Duration // an earlier one may be so old
	now    func() time.Time
}

// share takes a reading, or another hook's that is young enough. Hooks that
// start together wait for the one that reads, but not longer than half of their
// own time: whoever holds the lock may hang, and then each reads for himself. A
// new reading is written for them while its own hook goes on: written, where it
// is not nil, tells the end of that.
func (s Store) share(ctx context.Context, w wanted, ask prober) (r driver.Reading, shared bool, written <-chan error, problem error) {
	if r, ok := s.shared(w); ok {
		return r, true, nil, nil
	}
	release := func() {}
	if problem = os.MkdirAll(s.Dir, 0o755); problem == nil {
		var found bool
		wait := time.Second
		if deadline, ok := ctx.Deadline(); ok {
			wait = time.Until(deadline) / 2
		}
		unlock, err := lock(s.path("reading.lock"), wait, func() bool {
			r, found = s.shared(w)
			return found
		})
		if found {
			return r, true, nil, nil
		}
		if problem = err; err == nil {
			if r, ok := s.shared(w); ok { // written while we waited
				unlock()
				return r, true, nil, nil
			}
			release = unlock
		}
	}
	r = ask(ctx, driver.Request{Tier: w.tier, AfterSeq: w.after, Host: w.host, Dirs: w.dirs})
	return r, false, s.leave(sharedReading{readingSchema, w.boot, w.tier, w.after, r}, release), problem
}

// leave writes a reading for other hooks, beside what its own hook does, and then
// releases the lock.
func (s Store) leave(r sharedReading, release func()) <-chan error {
	written := make(chan error, 1)
	go func() {
		err := error(nil)
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("internal fault: %v", v)
			}
			release()
			written <- err
		}()
		err = writeJSON(s.path("reading.json"), r)
	}()
	return written
}

// shared returns the last reading if it is good enough. One that the probe did
// not answer is shared as well: asking again at once would only start another
// probe that hangs. A probe that died or talked nonsense is asked anew.
func (s Store) shared(w wanted) (driver.Reading, bool) {
	path := s.path("reading.json")
	st, err := os.Lstat(path)
	if err != nil || !w.young(st.ModTime()) {
		return driver.Reading{}, false // not worth opening
	}
	var have sharedReading
	if readJSON(path, &have) != nil || have.Schema != readingSchema || have.BootID != w.boot {
		return driver.Reading{}, false
	}
	r := have.Reading
	switch {
	case !w.young(r.Node.Time), have.Tier < w.tier, have.After > w.after, w.host && r.Node.Host == nil:
		return driver.Reading{}, false
	case r.Answer == gpu.AnswerWhole, r.Answer == gpu.AnswerPartial, r.Answer == gpu.AnswerNone:
		return r, true
	}
	return driver.Reading{}, false
}

// young says whether what happened then is new enough. Looks that begin at the
// same time share one reading, also where none wants an older one.
func (w wanted) young(t time.Time) bool {
	age := w.now().Sub(t)
	return age >= 0 && (t.After(w.asked) || w.maxAge > 0 && age <= w.maxAge)
}
