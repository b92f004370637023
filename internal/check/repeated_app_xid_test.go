package check

import (
	"testing"
	"time"

	"gpuhooks/internal/xid"
)

func TestRepeatedAppXID(t *testing.T) {
	jobs := func(n int, ago time.Duration) func(*Input) {
		return func(in *Input) {
			in.Memory.AppErrors = AppErrors{}
			for i := range n {
				in.Memory.AppErrors["GPU-1"] = append(in.Memory.AppErrors["GPU-1"], xid.AppError{Code: 31, Time: noon.Add(-ago), Job: string(rune('a' + i))})
			}
		}
	}
	want := []string{"fail GPU-1: application errors (XID 13, 31) of 3 different jobs on this GPU: suspect the hardware, run tiers 2 and 3"}
	runTests(t, repeatedAppXID, []test{
		{"two jobs", jobs(2, time.Hour), nil},
		{"three jobs", jobs(3, time.Hour), want},
		{"three jobs, long ago", jobs(3, 8*24*time.Hour), nil},
		{"three jobs, and the log cannot be read now", all(jobs(3, time.Hour), func(in *Input) { in.Kernel = Kernel{} }), want},
		{"the log cannot be read", func(in *Input) { in.Kernel = Kernel{} }, []string{"skip node: the kernel log was not read"}},
		{"not judged", all(jobs(3, time.Hour), func(in *Input) { in.Only = []string{"GPU-0"} }), nil},
	})
}
