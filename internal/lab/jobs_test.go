//go:build e2e

package lab

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/record"
)

// load is a job script that makes its GPUs busy.
func load(flags string) string { return "exec " + shared.Tool() + " load " + flags }

// Jobs that end in another way than by themselves.

func TestRequeuedRunsAreNeverMixed(t *testing.T) {
	id := submit(t, load("--sm 0.5 --util 80 --for 6s"), "--gres=gpu:1", "-w", "n1")
	wait(t, id, "RUNNING")
	time.Sleep(2 * time.Second)
	if _, err := shared.Slurm(t.Context(), "scontrol", "requeue", fmt.Sprint(id)); err != nil {
		t.Fatal(err)
	}
	if j := wait(t, id, "COMPLETED"); j.Restarts != 1 {
		t.Errorf("%d restarts, want 1", j.Restarts)
	}
	all, err := shared.Records(id)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d records, %v, want one of each run\n%s", len(all), err, logs(id))
	}
	for i, r := range all {
		if r.Job.Restart != i {
			t.Errorf("record %d is of run %d", i, r.Job.Restart)
		}
		whole(t, r)
	}
	if e0, e1 := all[0].Elapsed.Or(0), all[1].Elapsed.Or(0); e0 > 6 || e1 < 6 {
		t.Errorf("runs of %.1f and %.1f s: the first was cut short, the second lasted 6 s", e0, e1)
	}
	if all[0].End.Or(time.Time{}).After(all[1].Start.Or(time.Time{})) {
		t.Errorf("the first run ended after the second had begun")
	}
}

func TestCancelledJobIsRecorded(t *testing.T) {
	id := submit(t, load("--sm 0.5 --util 80 --for 60s"), "--gres=gpu:1", "-w", "n1")
	wait(t, id, "RUNNING")
	time.Sleep(3 * time.Second)
	if err := shared.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	wait(t, id, "CANCELLED")
	r := recordOf(t, id)
	whole(t, r)
	// slurmctld tells the node to end the job before it knows how it ended: the
	// epilog of a cancelled job is told exit code 0 and no signal.
	if r.State.Word != record.Completed {
		t.Errorf("state %+v", r.State)
	}
	if e := r.Elapsed.Or(0); e < 3 || e > 20 {
		t.Errorf("%.1f s", e)
	}
	undrained(t, "n1")
}

func TestFailedJobKeepsItsExitCode(t *testing.T) {
	id := submit(t, "sleep 1; exit 3", "--gres=gpu:1", "-w", "n1")
	wait(t, id, "FAILED")
	r := recordOf(t, id)
	if code, ok := r.State.ExitCode.Get(); r.State.Word != record.Failed || !ok || code != 3 {
		t.Errorf("state %+v, want failed with 3", r.State)
	}
	undrained(t, "n1")
}

// A job without GPUs costs nothing and leaves nothing.
func TestJobWithoutGPUs(t *testing.T) {
	id := submit(t, "sleep 1", "-w", "n1")
	wait(t, id, "COMPLETED")
	n := shared.Node("n1")
	if names := runsOf(n, id); len(names) > 0 {
		t.Errorf("left %v", names)
	}
	if all, err := shared.Records(id); err != nil || len(all) > 0 {
		t.Errorf("%d records, %v", len(all), err)
	}
	if said := logs(id); said != "" {
		t.Errorf("the hooks said: %s", said)
	}
}

// Another user's job, and its name in the record.
func TestJobOfAUser(t *testing.T) {
	id := submit(t, load("--sm 0.4 --for 3s"), "--gres=gpu:1", "-w", "n2", "--uid=nobody")
	wait(t, id, "COMPLETED")
	if r := recordOf(t, id); r.Job.User != "nobody" || r.Job.Partition != "gpu" {
		t.Errorf("user %q, partition %q", r.Job.User, r.Job.Partition)
	}
}

// A job on two nodes has a record on each.
func TestJobOnTwoNodes(t *testing.T) {
	id := submit(t, load("--sm 0.4 --for 3s"), "--gres=gpu:2", "-N", "2")
	wait(t, id, "COMPLETED")
	all, err := shared.Records(id)
	if err != nil || len(all) != 2 || all[0].Node == all[1].Node {
		t.Fatalf("%d records, %v\n%s", len(all), err, logs(id))
	}
	for _, r := range all {
		whole(t, r)
		if len(r.GPUs) != 2 || r.Job.NodeCount.Or(0) != 2 {
			t.Errorf("%s: %d GPUs, %d nodes", r.Node, len(r.GPUs), r.Job.NodeCount.Or(0))
		}
	}
}

// Eight jobs at once on one node: each has its own GPU and its own figures.
func TestEightJobsShareANode(t *testing.T) {
	if _, err := shared.WaitNode(t.Context(), "n2", patience, "IDLE"); err != nil {
		t.Fatal(err)
	}
	const seconds = 8
	var ids []int
	for i := range 8 {
		ids = append(ids, submit(t, load(fmt.Sprintf("--sm %g --util 90 --for %ds", 0.1*float64(i+1), seconds)), "--gres=gpu:1", "-w", "n2"))
	}
	owner := map[string]int{}
	for i, id := range ids {
		wait(t, id, "COMPLETED")
		r := recordOf(t, id)
		whole(t, r)
		if len(r.GPUs) != 1 {
			t.Fatalf("job %d: %d GPUs", id, len(r.GPUs))
		}
		g := r.GPUs[0]
		if other, twice := owner[g.UUID]; twice {
			t.Errorf("jobs %d and %d both had %s", other, id, g.UUID)
		}
		owner[g.UUID] = id
		// The load lasted 8 s of the measured time, the rest is Slurm's; a look
		// may take half a second while eight jobs start on two cores.
		elapsed := r.Elapsed.Or(seconds)
		want := 0.1 * float64(i+1) * seconds / elapsed
		if sm, ok := g.Get("sm_active_mean_ratio"); !ok || math.Abs(sm-want) > (0.01+0.5/elapsed)*want {
			t.Errorf("job %d: SM active %.4f, want %.4f (%.1f s)", id, sm, want, elapsed)
		}
	}
}

// A report of both nodes' records, of one job that is unknown, and as JSON.
func TestReport(t *testing.T) {
	id := submit(t, load("--sm 0.4 --for 3s"), "--gres=gpu:1", "-w", "n1")
	wait(t, id, "COMPLETED")
	if out, err := shared.Report(t.Context(), fmt.Sprint(id)); err != nil || !strings.Contains(out, fmt.Sprint(id)) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := shared.Report(t.Context(), fmt.Sprint(id), "--json"); err != nil || !strings.Contains(out, `"schema"`) {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := shared.Report(t.Context(), "999999")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(out, "999999") {
		t.Errorf("an unknown job: %v\n%s", err, out)
	}
}
