package lab

import (
	"reflect"
	"testing"
)

func TestParseJob(t *testing.T) {
	const line = "JobId=13 ArrayJobId=12 ArrayTaskId=1 JobName=sbatch UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=1 " +
		"JobState=PENDING Reason=BeginTime Dependency=(null) Requeue=1 Restarts=2 BatchFlag=2 Reboot=0 ExitCode=0:15 NodeList=(null)"
	got, err := parseJob(line)
	want := Job{ID: 13, ArrayJob: 12, ArrayTask: 1, State: "PENDING", Reason: "BeginTime", Restarts: 2, ExitCode: "0:15"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseJob("slurm_load_jobs error: Invalid job id specified"); err == nil {
		t.Error("an error message passed as a job")
	}
}

func TestParseNode(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       NodeState
	}{
		{"idle", "NodeName=n1 Arch=x86_64 State=IDLE ThreadsPerCore=1 Gres=gpu:h100:8", NodeState{State: "IDLE"}},
		{
			"a reason with brackets and the author cut off",
			"NodeName=n3 State=IDLE+DRAIN Gres=gpu:h100:8 Reason=[HC] LOST gpu=3 GPU-1 [root@2026-11-30T18:00:00]\n",
			NodeState{State: "IDLE+DRAIN", Reason: "[HC] LOST gpu=3 GPU-1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseNode(c.line); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestOverride(t *testing.T) {
	got := override([]string{"KillWait=2", "Prolog=a", "TaskPlugin=task/none"}, []string{"killwait=9", "Prolog=b", "HealthCheckInterval=5"})
	want := []string{"TaskPlugin=task/none", "killwait=9", "Prolog=b", "HealthCheckInterval=5"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseGPUs(t *testing.T) {
	for line, want := range map[string][]int{
		"JobId=1 Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:h100:1(IDX:4)":       {4},
		"JobId=1 Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:h100:4(IDX:0-2,5) X": {0, 1, 2, 5},
		"JobId=1 Nodes=n1 GRES=gpu:h100:0(IDX:)":                        nil,
		"JobId=1 Nodes=n1 GRES=":                                        nil,
	} {
		got, err := parseGPUs(line)
		if !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%s: got %v, %v, want %v", line, got, err, want)
		}
	}
}
