package slurm

import (
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

// baseEnv is what slurmd 22.05 puts into a prolog (facts: slurm.md §1.1).
var baseEnv = []string{
	"SLURMD_NODENAME=n1", "SLURM_CONF=/etc/slurm/slurm.conf", "SLURM_CLUSTER_NAME=lab",
	"SLURM_JOB_ID=4711", "SLURM_JOBID=4711", "SLURM_JOB_UID=5001", "SLURM_JOB_GID=5002", "SLURM_UID=5001",
	"SLURM_JOB_USER=ada", "SLURM_JOB_WORK_DIR=/home/ada", "SLURM_NODELIST=n[1-2]", "SLURM_SCRIPT_CONTEXT=prolog_slurmd",
	"SLURM_JOB_PARTITION=gpu", "SLURM_JOB_ACCOUNT=physics", "SLURM_JOB_COMMENT=x", "SLURM_JOB_CPUS_PER_NODE=16(x2)",
	"SLURM_JOB_NUM_NODES=2", "SLURM_JOB_RESTART_COUNT=1", "SLURM_JOB_STDOUT=/home/ada/out",
}

func with(extra ...string) []string { return append(append([]string(nil), baseEnv...), extra...) }

func TestFromEnv2205(t *testing.T) {
	j, err := FromEnv(baseEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := Job{
		ID: 4711, RestartCount: 1, Context: Prolog, User: "ada", UID: gpu.Some[uint32](5001), GID: gpu.Some[uint32](5002),
		Account: "physics", Partition: "gpu", Cluster: "lab", NodeName: "n1", NodeList: "n[1-2]",
		NumNodes: gpu.Some(2), CPUsOnNode: "16(x2)", SlurmConf: "/etc/slurm/slurm.conf",
	}
	if j != want {
		t.Errorf("got  %+v\nwant %+v", j, want)
	}
}

func TestFromEnvByVersion(t *testing.T) {
	j, err := FromEnv(with("SLURM_JOB_START_TIME=1764500000", "SLURM_JOB_END_TIME=1764503600", "SLURM_JOB_NODELIST=n[1-2]")) // 23.02
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := j.Start.Get(); !s.Equal(time.Unix(1764500000, 0)) {
		t.Errorf("start %v", s)
	}
	if e, _ := j.End.Get(); e.Sub(j.Start.Or(time.Time{})) != time.Hour {
		t.Errorf("end %v", e)
	}
	j, err = FromEnv(with("SLURM_JOB_SLUID=sABC", "SLURM_JOB_QOS=high", "SLURM_HET_JOB_ID=4700", "SLURM_JOB_END_TIME=4294967294")) // 25.11, 26.05
	if err != nil || j.SLUID != "sABC" || j.QOS != "high" || j.HetJobID != 4700 || j.End.IsSet() {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestFromEnvEpilog(t *testing.T) {
	tests := []struct {
		env                []string
		code, sig, derived int
		known              bool
	}{
		{[]string{"SLURM_JOB_EXIT_CODE=768", "SLURM_JOB_EXIT_CODE2=3:0", "SLURM_JOB_DERIVED_EC=768"}, 3, 0, 3, true},
		{[]string{"SLURM_JOB_EXIT_CODE=9", "SLURM_JOB_EXIT_CODE2=0:9", "SLURM_JOB_DERIVED_EC=9"}, 0, 9, 137, true},
		{[]string{"SLURM_JOB_EXIT_CODE=256", "SLURM_JOB_DERIVED_EC=0"}, 1, 0, 0, true},
		{nil, 0, 0, 0, false},
	}
	for _, tt := range tests {
		env := []string{"SLURM_JOB_ID=1", "SLURM_SCRIPT_CONTEXT=epilog_slurmd"}
		j, err := FromEnv(append(env, tt.env...))
		if err != nil {
			t.Fatal(err)
		}
		code, known := j.ExitCode.Get()
		if j.Context != Epilog || known != tt.known || code != tt.code || j.ExitSignal.Or(0) != tt.sig || j.DerivedExit.Or(0) != tt.derived {
			t.Errorf("%v: %+v", tt.env, j)
		}
	}
	j, _ := FromEnv(with("SLURM_JOB_EXIT_CODE2=3:0"))
	if j.ExitCode.IsSet() {
		t.Error("a prolog knows no exit code")
	}
}

func TestContext(t *testing.T) {
	tests := []struct {
		env  string
		want Context
	}{
		{"SLURMD_NODENAME=n1", OutsideOfAJob},
		{"SLURMD_NODENAME=n1 CUDA_VISIBLE_DEVICES=0", OutsideOfAJob},
		{"SLURM_JOBID=1 SLURM_SCRIPT_CONTEXT=prolog_slurmd", Prolog},
		{"SLURM_JOB_ID=1 SLURM_SCRIPT_CONTEXT=epilog_slurmctld", EpilogCtld},
		{"SLURM_JOB_ID=1 SLURM_SCRIPT_CONTEXT=prolog_task", InJob},
		{"SLURM_JOB_ID=1 SLURM_NODEID=0", InJob},
		{"SLURM_JOB_ID=1", UnknownContext},
	}
	for _, tt := range tests {
		j, err := FromEnv(strings.Fields(tt.env))
		if err != nil || j.Context != tt.want {
			t.Errorf("%s: %q, %v", tt.env, j.Context, err)
		}
	}
}

func TestFromEnvBadInput(t *testing.T) {
	for _, env := range []string{"SLURM_JOB_ID=abc", "SLURM_JOB_ID=-1", "SLURM_JOB_ID=0", "SLURM_JOB_ID=99999999999"} {
		if _, err := FromEnv([]string{env}); err == nil {
			t.Errorf("%s: no error", env)
		}
	}
	if _, err := FromEnv([]string{"SLURM_JOB_ID=1", "SLURM_JOB_GPUS=" + strings.Repeat("0,", maxList)}); err == nil {
		t.Error("half a GPU list was accepted")
	}
	j, err := FromEnv([]string{"SLURM_JOB_ID=1", "SLURM_JOB_USER=a\x1b[31m\nroot\xff", "SLURM_JOB_ACCOUNT=" + strings.Repeat("ä", 1000), "SLURM_JOB_USER=second"})
	if err != nil {
		t.Fatal(err)
	}
	if j.User != "a?[31m?root?" {
		t.Errorf("user %q", j.User)
	}
	if len(j.Account) > maxName {
		t.Errorf("account has %d bytes", len(j.Account))
	}
}

func FuzzFromEnv(f *testing.F) {
	f.Add(strings.Join(baseEnv, "\n") + "\nSLURM_JOB_GPUS=0,1-3\nCUDA_VISIBLE_DEVICES=GPU-0")
	f.Add("SLURM_JOB_ID=1\nSLURM_SCRIPT_CONTEXT=epilog_slurmd\nSLURM_JOB_EXIT_CODE2=1:2\nCUDA_VISIBLE_DEVICES=MIG-GPU-a/1/2")
	inv := node(4, "24.11.5")
	g := gres("AutoDetect=nvml")
	f.Fuzz(func(t *testing.T, s string) {
		j, err := FromEnv(strings.Split(s, "\n"))
		if err != nil {
			return
		}
		r := Resolve(j, inv, g, Options{})
		if (r.Verdict == Resolved) != (len(r.GPUs) > 0) {
			t.Fatalf("%s with %d GPUs", r.Verdict, len(r.GPUs))
		}
	})
}
