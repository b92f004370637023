package main

import (
	"fmt"
	"strings"
	"testing"

	"gpuhooks/internal/lab/stage"
)

// Three jobs on one GPU end in the same application error: the third epilog
// suspects the card, and nobody is drained for it.
func TestApplicationErrorsOfDifferentJobs(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	s.Configure("enforce", false, "")
	const suspected = "application errors (XID 13, 31) of 3 different jobs on this GPU"
	for id := range 3 {
		job := stage.Job{ID: 20 + id, GPUs: "2"}
		expect(t, s.Prolog(job), 0)
		s.Must(s.Xid(2, 31, "pid=4711, name=python3, channel 0x00000002, intr 00000000. MMU Fault: ENGINE GRAPHICS"))
		r := s.Epilog(job)
		expect(t, r, 0)
		if got := strings.Contains(r.Stderr, suspected); got != (id == 2) {
			t.Errorf("after %d jobs: %s", id+1, r.Stderr)
		}
	}
	if reason := s.Drained(); reason != "" {
		t.Errorf("drained: %q", reason)
	}
	memory := s.Read("run/memory.json")
	for id := range 3 {
		if want := fmt.Sprintf(`"job":"%d"`, 20+id); !strings.Contains(strings.ReplaceAll(memory, " ", ""), want) {
			t.Errorf("the memory does not name job %d: %s", 20+id, memory)
		}
	}
}
