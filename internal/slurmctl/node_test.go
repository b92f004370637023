package slurmctl

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

// Printed by scontrol 22.05.8.
const shown = `NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUTot=2 CPULoad=N/A AvailableFeatures=(null) Gres=gpu:h100:8 NodeAddr=127.0.0.1 NodeHostName=localhost Port=27901 Version=22.05.8 OS=Linux 6.1 #1 SMP RealMemory=100 State=IDLE*+DRAIN+NOT_RESPONDING ThreadsPerCore=1 CfgTRES=cpu=2,mem=100M,billing=2 AllocTRES= ExtSensorsTemp=n/s `

func TestParseNode(t *testing.T) {
	at := gpu.Some(time.Date(2026, 11, 30, 18, 14, 39, 0, time.UTC))
	tests := []struct {
		name, tail   string
		reason, user string
		time         gpu.Opt[time.Time]
	}{
		{"no reason", "", "", "", gpu.Opt[time.Time]{}},
		{"ours", "Reason=[HC] gpu-lost gpu=3 GPU-0; x [root@2026-11-30T18:14:39]\n", "[HC] gpu-lost gpu=3 GPU-0; x", "root", at},
		{"with keys in it", "Reason=[HC] State=IDLE [x@y] [root@2026-11-30T18:14:39] Comment=hello Reason=foo Extra=bar\n", "[HC] State=IDLE [x@y]", "root", at},
		{"of a numeric user", "Reason=by hand [12345@2026-11-30T18:14:39] Comment=c\n", "by hand", "12345", at},
		{"two lines", "Reason=first\nsecond [slurm@2026-11-30T18:14:39]\n", "first\nsecond", "slurm", at},
		{"in a comment only", "Comment=hello Reason=foo Extra=bar\n", "", "", gpu.Opt[time.Time]{}},
		{"without a stamp", "Reason=Not responding", "Not responding", "", gpu.Opt[time.Time]{}},
	}
	for _, tt := range tests {
		n, err := parseNode(shown + tt.tail)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		want := Node{Name: "n1", State: "IDLE", Flags: []string{"DRAIN", "NOT_RESPONDING"}, Version: "22.05.8", Gres: "gpu:h100:8", Reason: tt.reason, ReasonUser: tt.user, ReasonTime: tt.time}
		if !reflect.DeepEqual(n, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tt.name, n, want)
		}
		if !n.Drained() {
			t.Errorf("%s: not drained", tt.name)
		}
	}
}

func TestParseNodes(t *testing.T) {
	const out = `n1|drained|2026-11-30T18:14:39|root|[HC] gpu-lost gpu=3 | x
n1|drained|2026-11-30T18:14:39|root|[HC] gpu-lost gpu=3 | x
n2|idle|Unknown|root|none
n3|draining*|2026-11-30T18:14:39|slurm|two
lines
n4|down*|Unknown|slurm|Not responding
`
	nodes, err := parseNodes(out)
	if err != nil || len(nodes) != 4 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	if n := nodes[0]; !n.Drained() || n.Reason != "[HC] gpu-lost gpu=3 | x" || !n.ReasonTime.IsSet() {
		t.Errorf("%+v", n)
	}
	if n := nodes[1]; n.Drained() || n.Reason != "" || n.ReasonTime.IsSet() {
		t.Errorf("%+v", n)
	}
	if n := nodes[2]; !n.Drained() || n.State != "DRAINING" {
		t.Errorf("%+v", n)
	}
	if nodes[3].Drained() {
		t.Errorf("%+v", nodes[3])
	}
	if _, err := parseNodes("slurm is not well"); err == nil {
		t.Error("garbage is an empty cluster")
	}
}

func TestNodeJobs(t *testing.T) {
	c := Client{Squeue: fake(t, "printf '4711|4711|N/A|RUNNING\\n130|120|3|PENDING\\n120|120|[4-9]|PENDING\\n'")}
	jobs, err := c.NodeJobs(context.Background(), "n1")
	want := []Job{{4711, "", "RUNNING"}, {130, "120_3", "PENDING"}, {120, "", "PENDING"}}
	if err != nil || !reflect.DeepEqual(jobs, want) {
		t.Errorf("%+v, %v", jobs, err)
	}
	c.Squeue = fake(t, "echo what")
	if jobs, err := c.NodeJobs(context.Background(), "n1"); err == nil {
		t.Errorf("garbage is a list of jobs: %+v", jobs)
	}
	c.Squeue = fake(t, "exit 0")
	if jobs, err := c.NodeJobs(context.Background(), "n1"); err != nil || len(jobs) != 0 {
		t.Errorf("%+v, %v", jobs, err)
	}
}

func TestFindJob(t *testing.T) {
	gone := "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
	tests := []struct {
		name, spec, squeue, sacct string
		want                      uint32
		err                       error
	}{
		{"a task in memory", "120_3", "printf '129|120|2|RUNNING\\n130|120|3|RUNNING\\n'", "", 130, nil},
		{"a plain job", "4711", "printf '4711|4711|N/A|COMPLETED\\n'", "", 4711, nil},
		{"only accounted", "120_3", gone, "printf '130|120_3|CANCELLED by 0\\n'", 130, nil},
		{"squeue knows the array, not the task", "120_3", "printf '120|120|[4-9]|PENDING\\n'", "printf '130|120_3|FAILED\\n'", 130, nil},
		{"nowhere", "120_3", gone, "exit 0", 0, ErrUnknownJob},
		{"no accounting", "120_3", gone, "echo 'Slurm accounting storage is disabled' >&2; exit 1", 0, ErrUnknownJob},
		{"no sacct", "120_3", gone, "", 0, ErrUnknownJob},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Client{Squeue: fake(t, tt.squeue)}
			if tt.sacct != "" {
				c.Sacct = fake(t, tt.sacct)
			}
			j, err := c.FindJob(context.Background(), tt.spec)
			if j.ID != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%+v, %v", j, err)
			}
		})
	}
	c := Client{Squeue: fake(t, "echo 'Unable to contact slurm controller' >&2; exit 1"), Sacct: fake(t, "exit 0")}
	if _, err := c.FindJob(context.Background(), "1"); err == nil || errors.Is(err, ErrUnknownJob) {
		t.Errorf("a silent controller is not an unknown job: %v", err)
	}
	if _, err := (Client{}).FindJob(context.Background(), "1"); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("without squeue and sacct: %v", err)
	}
	for _, bad := range []string{"", "0", "1;2", "1_", "-1", "a", "1.0"} {
		if _, err := c.FindJob(context.Background(), bad); err == nil || errors.Is(err, ErrUnknownJob) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParseNode(f *testing.F) {
	f.Add(shown + "Reason=x [root@2026-11-30T18:14:39]")
	f.Add("NodeName=a State=DOWN+DRAIN")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseNode(s); err == nil && (n.Name == "" || n.State == "") {
			t.Fatalf("%q gives %+v", s, n)
		}
	})
}
