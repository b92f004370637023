package xid

import (
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

func TestAppErrors(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	type noted struct {
		code, pid int
		job       string
		after     time.Duration
		seq, last uint64
	}
	fault := func(job string, pid int, after time.Duration, seq uint64) noted {
		return noted{31, pid, job, after, seq, seq}
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name   string
		events []noted
		at     time.Duration
		want   int
	}{
		{"nothing", nil, 0, 0},
		{"one job, again and again", []noted{fault("1", 10, 0, 1), fault("1", 10, time.Hour, 2), fault("1", 11, 2*time.Hour, 3)}, day, 1},
		{"three jobs", []noted{fault("1", 10, 0, 1), fault("2", 11, time.Hour, 2), fault("3", 12, 2*time.Hour, 3)}, day, 3},
		{"the same process number in three jobs", []noted{fault("1", 10, 0, 1), fault("2", 10, time.Hour, 2), fault("3", 10, 2*time.Hour, 3)}, day, 3},
		{"13 and 31 count together", []noted{{13, 10, "1", 0, 1, 1}, fault("2", 11, time.Hour, 2)}, day, 2},
		{"other numbers do not count", []noted{{43, 10, "1", 0, 1, 1}, {79, 11, "2", time.Hour, 2, 2}}, day, 0},
		{"too long ago", []noted{fault("1", 10, 0, 1), fault("2", 11, 3*day, 2), fault("3", 12, 8*day, 3)}, 9 * day, 2},
		{"the same event, read twice", []noted{fault("1", 10, 0, 5), fault("2", 10, 0, 5)}, day, 1},
		{"processes without a job", []noted{fault("", 10, 0, 1), fault("", 11, time.Hour, 2), fault("", 12, 2*time.Hour, 3)}, day, 3},
		{"ranks of one job that fail together", []noted{fault("", 10, 0, 1), fault("", 11, time.Second, 2), fault("", 12, 2*time.Second, 3)}, day, 1},
		{"one process again", []noted{fault("", 10, 0, 1), fault("", 10, time.Hour, 2)}, day, 1},
		{"a collapsed event that goes on: its first process is an old one", []noted{fault("", 10, 0, 1), {31, 10, "", time.Hour, 1, 9}}, day, 2},
		{"a process of the job, read after its end", []noted{fault("1", 10, 0, 1), fault("", 10, time.Hour, 2)}, day, 1},
		{"another one of the job, read after its end", []noted{fault("1", 10, 0, 1), fault("", 11, time.Second, 2), fault("1", 12, time.Hour, 3)}, day, 1},
		{"with and without a job", []noted{fault("1", 10, 0, 1), fault("", 11, time.Hour, 2)}, day, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var known []AppError
			for _, n := range tt.events {
				e := Event{Kind: KindXID, Code: n.code, PID: gpu.Some(n.pid), Seq: n.seq, Last: n.last, Count: 1}
				e.First, e.Until = begin.Add(n.after), begin.Add(n.after)
				known = NoteAppError(known, e, n.job)
			}
			if got := AppErrorJobs(known, begin.Add(tt.at)); got != tt.want {
				t.Errorf("%d jobs, want %d: %+v", got, tt.want, known)
			}
		})
	}
}

func TestAppErrorsAreBounded(t *testing.T) {
	var known []AppError
	for i := range 1000 {
		e := at(i+1, xidEvent(31))
		e.Until = e.Until.Add(time.Duration(i) * time.Hour)
		e.PID = gpu.Some(i + 1)
		known = NoteAppError(known, e, "")
	}
	if len(known) != maxAppErrors || known[maxAppErrors-1].PID != 1000 {
		t.Errorf("%d remembered, the last %+v", len(known), known[len(known)-1])
	}
}
