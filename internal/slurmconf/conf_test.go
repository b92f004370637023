package slurmconf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const sampleConf = `# a comment with a backslash \
ClusterName=lab
slurmctldhost=head(10.0.0.1)   # trailing comment
PrologFlags = Alloc,Contain
SchedulerParameters=nohold_on_prolog_fail,\
bf_interval=2
Prolog="/etc/slurm/prolog.d/*"
Epilog=/etc/slurm/a\#b
Prolog=/etc/slurm/second
SlurmctldParameters+=health_check_report
AuthInfo=socket=/run/munge/s,cred_expire=5
NodeName=DEFAULT CPUs=64 Gres=gpu:h100:8
NodeName=gpu[01-04] State=UNKNOWN
NodeName=cpu[1-2] Gres=""
NodeName=DEFAULT Gres=gpu:a100:4(S:0-1),shard:16
NodeName=big1
PartitionName=p Nodes=ALL Default=YES
`

func TestParseConf(t *testing.T) {
	c, err := ParseConf("slurm.conf", []byte(sampleConf))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"CLUSTERNAME":         "lab",
		"SlurmctldHost":       "head(10.0.0.1)",
		"PrologFlags":         "Alloc,Contain",
		"Prolog":              "/etc/slurm/second",
		"Epilog":              "/etc/slurm/a#b",
		"SlurmctldParameters": "health_check_report",
	} {
		if s, ok := c.Get(key); !ok || s.Value != want {
			t.Errorf("%s = %q (%v), want %q", key, s.Value, ok, want)
		}
	}
	if s := c.All("prolog"); len(s) != 2 || s[0].Value != "/etc/slurm/prolog.d/*" || s[0].Line != 7 {
		t.Errorf("Prolog lines: %+v", s)
	}
	if v, ok := c.Option("AuthInfo", "cred_expire"); !ok || v != "5" {
		t.Errorf("cred_expire = %q, %v", v, ok)
	}
	if _, ok := c.Option("SchedulerParameters", "bf_interval"); !ok {
		t.Error("a continued line lost its second half")
	}
	if _, ok := c.Get("Nodes"); ok {
		t.Error("a partition's key became a setting")
	}
}

func TestNodeHasGPUs(t *testing.T) {
	c, err := ParseConf("slurm.conf", []byte(sampleConf))
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string][2]bool{
		"gpu03":   {true, true}, // from NodeName=DEFAULT
		"big1":    {true, true},
		"nowhere": {false, false}, // a dynamic node is not a node without GPUs
	} {
		has, known := NodeHasGPUs(c, node)
		if [2]bool{has, known} != want {
			t.Errorf("%s: has %v, known %v", node, has, known)
		}
	}
	if has, known := NodeHasGPUs(Conf{}, "gpu03"); has || known {
		t.Error("an empty slurm.conf knows nothing")
	}
	n, _ := c.Node("big1")
	want := []GresItem{{"gpu", "a100", 4}, {"shard", "", 16}}
	if got := n.Gres(); !reflect.DeepEqual(got, want) {
		t.Errorf("big1: %+v, want %+v", got, want)
	}
}

func TestNodeWithoutGres(t *testing.T) {
	c, err := ParseConf("slurm.conf", []byte("NodeName=n1 CPUs=4\nNodeName=n2 Gres=craynetwork:4\nNodeName=n3 Gres=shard:8\nNodeName=n4 Gres=gpu:0\n"))
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]bool{"n1": false, "n2": false, "n3": true, "n4": false} {
		if has, known := NodeHasGPUs(c, node); has != want || !known {
			t.Errorf("%s: has %v known %v, want %v", node, has, known, want)
		}
	}
}

func TestParseGresItems(t *testing.T) {
	for in, want := range map[string][]GresItem{
		"gpu":                            {{"gpu", "", 1}},
		"gpu:8":                          {{"gpu", "", 8}},
		"gpu:h100":                       {{"gpu", "h100", 1}},
		"GPU:1g.10gb:7,gpu:3g.40gb+me:1": {{"gpu", "1g.10gb", 7}, {"gpu", "3g.40gb+me", 1}},
		"gpu:h100:8(S:0-1),mps:1K":       {{"gpu", "h100", 8}, {"mps", "", 1024}},
		"bandwidth:lustre:no_consume:4G": {{"bandwidth", "lustre", 4 << 30}},
		"gpu:h100:x8":                    {{"gpu", "h100", 0}},
		"(null)":                         nil,
		"":                               nil,
	} {
		if got := ParseGresItems(in); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

func TestReadConfIncludes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("slurm.conf", "ClusterName=lab\ninclude nodes.%c.conf\nInclude missing.conf\nInclude loop.conf\nGresTypes=gpu\n")
	write("nodes.lab.conf", "NodeName=n[1-2] Gres=gpu:2\n")
	write("loop.conf", "Include loop.conf\n")
	c, err := ReadConf(filepath.Join(dir, "slurm.conf"))
	if _, known := NodeHasGPUs(c, "n2"); !known {
		t.Error("the included file was not read")
	}
	if _, ok := c.Get("GresTypes"); !ok {
		t.Error("reading stopped at the include")
	}
	if err == nil || !strings.Contains(err.Error(), "slurm.conf:3: Include:") || !strings.Contains(err.Error(), "too many files") {
		t.Errorf("error %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConf(filepath.Join(dir, "d")); err == nil {
		t.Error("a directory was read as a file")
	}
}

func TestProblemsNameFileLineAndKey(t *testing.T) {
	_, err := ParseConf("slurm.conf", []byte("ClusterName=lab\nGPUNODE1: GPU02\nNodeName=n[1 CPUs=4\nX=\"open\n"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`slurm.conf:2: "GPUNODE1: GPU02" is not key=value`,
		`slurm.conf:3: NodeName: host list "n[1": brackets do not match`,
		`slurm.conf:4: `,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

func FuzzConf(f *testing.F) {
	f.Add([]byte(sampleConf))
	files, err := filepath.Glob("testdata/gres/*/slurm.conf")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _ := ParseConf("f", data)
		NodeHasGPUs(c, "gpu1")
		c.Option("SchedulerParameters", "x")
	})
}
