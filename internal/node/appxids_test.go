package node

import (
	"context"
	"testing"

	"gpuhooks/internal/check"
	"gpuhooks/internal/verdict"
)

// Three jobs on one card that fail alike, one after the other: the third look
// warns, and so do those after it, of this card alone.
func TestRepeatedAppXID(t *testing.T) {
	n := newNode(t)
	warned := func(v verdict.Verdict) (uuids []string) {
		for _, f := range v.Findings {
			if f.Check == "repeated-app-xid" {
				if f.Outcome != check.Warn {
					t.Errorf("outcome %s", f.Outcome)
				}
				uuids = append(uuids, f.GPU.UUID)
			}
		}
		return uuids
	}
	uuid := n.reading.Node.GPUs[1].UUID
	judge := func(hook verdict.Hook, job string) verdict.Verdict {
		v := read(context.Background(), n.cfg, n.options(hook), n.ask).Judge(nil, Jobs{OnGPU: map[string][]string{uuid: {job}}})
		n.now = n.now.Add(1e9)
		return v
	}
	n.log(5)
	judge(verdict.HealthCheck, "1")
	for i, job := range []string{"17", "18", "19"} {
		seq := uint64(10 * (i + 1))
		n.log(seq, n.xid(31, 1, seq))
		got := warned(judge(verdict.Epilog, job))
		if want := i == 2; len(got) > 0 != want {
			t.Errorf("after job %s: warned of %v", job, got)
		}
		// The prolog of the next job reads the same event again: nobody's new one.
		if i < 2 {
			if got := warned(judge(verdict.Prolog, "20")); len(got) > 0 {
				t.Errorf("the prolog after job %s: warned of %v", job, got)
			}
		}
	}
	n.log(40)
	if got := warned(judge(verdict.HealthCheck, "20")); len(got) != 1 || got[0] != uuid {
		t.Errorf("the health check after them warns of %v, want %s", got, uuid)
	}
	if m := n.memory(); len(m.AppErrors) != 1 || len(m.AppErrors[uuid]) != 3 || m.AppErrors[uuid][0].Job != "17" {
		t.Errorf("remembered %+v", m.AppErrors)
	}
	n.boot("another boot")
	n.log(1)
	if got := warned(judge(verdict.HealthCheck, "")); len(got) > 0 {
		t.Errorf("after a reboot: warned of %v", got)
	}
}
