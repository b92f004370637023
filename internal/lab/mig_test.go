//go:build e2e && full

package lab

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/driver"
)

// cards of the node whose every MIG instance runs a job, and instances of each.
const cards, parts = 8, 7

// slicedNode is the scenario of a DGX A100 whose cards are all cut into seven.
func slicedNode(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	profile := ReadFile(filepath.Join("..", "sim", "profiles", "dgx-a100-mig.scenario"))
	if profile == "" {
		t.Fatal("the profile dgx-a100-mig is gone")
	}
	for line := range strings.Lines(profile) {
		if _, layout, ok := strings.Cut(line, ".mig."); !ok || strings.HasPrefix(layout, "sms") {
			b.WriteString(line)
		}
	}
	b.WriteString("count_calls = true\n")
	for i := range cards {
		fmt.Fprintf(&b, "gpu.%d.mig.mode = true\n", i)
		for k := range parts {
			fmt.Fprintf(&b, "gpu.%d.mig.%d = gi=%d,ci=0,profile=1g.5gb,start=%d,size=1,uuid=MIG-%08x-b2a9-5c9d-8ed4-0123456789ab\n",
				i, k, 7+k, k, 16*i+k)
		}
	}
	return b.String()
}

// 56 prologs start at once, one on each MIG instance of the node: they share what
// one of them has read, and each finds the instance of its own job.
func TestAPrologOnEveryInstance(t *testing.T) {
	l := startLab(t, Options{Nodes: 1, Scenario: slicedNode(t)})
	n := l.Nodes[0]
	if len(n.gres) != cards*parts {
		t.Fatalf("%d instances", len(n.gres))
	}
	if err := n.Sim.ResetCalls(); err != nil {
		t.Fatal(err)
	}
	// None ends before all have started: a prolog reads anew after a job's end.
	array, err := l.Submit(t.Context(), "until [ -e go.$SLURM_ARRAY_TASK_ID ]; do sleep 1; done",
		"--gres=gpu:1", fmt.Sprintf("--array=1-%d", cards*parts), "--output=%a.out")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 3 * time.Minute
	ids := map[int]int{} // by task
	for task := 1; task <= cards*parts; task++ {
		j, err := l.WaitTask(t.Context(), array, task, limit)
		if err != nil {
			t.Fatalf("%v\n%s", err, n.HookLog())
		}
		ids[task] = j.ID
	}
	var first, last time.Time // of the prologs' ends
	owner := map[string]int{}
	for _, id := range ids {
		run := filepath.Join(n.Run(), "runs", fmt.Sprintf("%d.0", id), "job.json")
		if err := poll(t.Context(), limit, func() (bool, error) { return ReadFile(run) != "", nil }); err != nil {
			t.Fatalf("job %d: no prolog: %v\n%s", id, err, n.HookLog())
		}
		r := readRun(t, n, uint32(id)).Resolution
		if len(r.GPUs) != 1 || r.GPUs[0].MIG == nil {
			t.Errorf("job %d: %+v", id, r)
			continue
		}
		uuid := r.GPUs[0].MIG.UUID
		if other, twice := owner[uuid]; twice || uuid == "" {
			t.Errorf("jobs %d and %d both have %q", id, other, uuid)
		}
		owner[uuid] = id
		st, err := os.Stat(run)
		if err != nil {
			t.Fatal(err)
		}
		if at := st.ModTime(); first.IsZero() || at.Before(first) {
			first = at
		}
		if at := st.ModTime(); at.After(last) {
			last = at
		}
	}
	calls, err := n.Sim.Calls()
	if err != nil {
		t.Fatal(err)
	}
	// One reading serves for five seconds, however long a busy machine takes to start
	// them all; the sampler has the driver once for itself.
	span, readings := last.Sub(first), calls["nvmlInit_v2"]-1
	t.Logf("%d prologs on %d instances within %.1f s: %d readings", len(ids), len(owner), span.Seconds(), readings)
	if most := 2 + int(span/(5*time.Second)); readings > most {
		t.Errorf("%d readings, want %d at most", readings, most)
	}
	if _, err := driver.ReadHeartbeat(n.Run()); err != nil {
		t.Errorf("no sampler: %v", err)
	}
	// They end a few at a time: 56 epilogs at once take two cores longer than an epilog
	// may take, and a health check would write their records later.
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(ids)), parts) {
		for _, task := range batch {
			if err := os.WriteFile(filepath.Join(l.Dir, "jobs", fmt.Sprintf("go.%d", task)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, task := range batch {
			j, err := l.WaitJob(t.Context(), ids[task], limit, "COMPLETED")
			if err != nil || j.Restarts != 0 {
				t.Errorf("task %d: %d restarts, %v", task, j.Restarts, err)
			}
			if _, err := l.Record(ids[task]); err != nil {
				t.Errorf("%v\n%s", err, n.HookLog())
			}
		}
	}
	if s, err := l.NodeState(t.Context(), n.Name); err != nil || s.Drained() {
		t.Errorf("%s %q, %v\n%s", s.State, s.Reason, err, n.HookLog())
	}
}
