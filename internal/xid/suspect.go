package xid

import (
	"cmp"
	"slices"
	"time"
)

// AppError is an XID that is the program's fault (13, 31), as it is remembered of
// a GPU: from one job it says nothing about the card, from several it does.
type AppError struct {
	Code int       `json:"code"`
	Seq  uint64    `json:"seq"` // kernel log number of its last record
	Time time.Time `json:"time"`
	Job  string    `json:"job,omitempty"` // "" when it could not be told
	PID  int       `json:"pid,omitempty"` // 0 when it is not known
}

// When application errors make a card suspect.
const (
	SuspectJobs   = 3 // so many different jobs
	suspectWithin = 7 * 24 * time.Hour
	maxAppErrors  = 16          // remembered of each GPU
	sameFailure   = time.Minute // processes of one job that fail together
)

// IsAppError says whether the event is one.
func IsAppError(e Event) bool { return e.Kind == KindXID && (e.Code == 13 || e.Code == 31) }

// NoteAppError remembers an event of the job that had the GPU ("": not known). An
// event that was noted before, or another one of the same job, adds nothing.
func NoteAppError(known []AppError, e Event, job string) []AppError {
	noted := uint64(0)
	for _, k := range known {
		noted = max(noted, k.Seq)
	}
	if !IsAppError(e) || len(known) > 0 && e.Last <= noted {
		return known
	}
	now := AppError{Code: e.Code, Seq: e.Last, Time: e.Until.UTC(), Job: job}
	if e.Seq > noted || len(known) == 0 { // else its first record, whose process it names, is an old one
		now.PID = e.PID.Or(0)
	}
	known = slices.Clone(known)
	i := slices.IndexFunc(known, func(k AppError) bool { return k.same(now) })
	if i >= 0 {
		now.Job = cmp.Or(now.Job, known[i].Job)
		known = slices.Delete(known, i, i+1)
	}
	if len(known) == maxAppErrors {
		known = slices.Delete(known, 0, 1)
	}
	return append(known, now)
}

// same says that both are of one job. Where a number is missing, one process is
// one job, and so are processes that fail within a minute.
func (a AppError) same(b AppError) bool {
	if a.Job != "" && b.Job != "" {
		return a.Job == b.Job
	}
	return a.PID != 0 && a.PID == b.PID || b.Time.Sub(a.Time).Abs() < sameFailure
}

// AppErrorJobs counts the different jobs of the last week.
func AppErrorJobs(known []AppError, now time.Time) int {
	n := 0
	for _, k := range known { // NoteAppError keeps one of each job
		if now.Sub(k.Time) <= suspectWithin {
			n++
		}
	}
	return n
}
