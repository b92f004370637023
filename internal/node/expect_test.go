package node

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
)

func TestExpected(t *testing.T) {
	const two = "NodeName=n1 Gres=gpu:h100:2,shard:8\n"
	tests := []struct {
		name, gres, conf string
		mig              bool
		minors           []int
		gpus             gpu.Opt[int]
	}{
		{"device files", "NodeName=n1 Name=gpu File=/dev/nvidia[0-3]\n", two, false, []int{0, 1, 2, 3}, gpu.Some(4)},
		{"below another root", "NodeName=n1 Name=gpu File=/sim/n1/dev/nvidia[2-3]\n", "", false, []int{2, 3}, gpu.Some(2)},
		{"MIG: a card counts once", "Name=gpu Type=1g MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21,/dev/nvidia-caps/nvidia-cap22\n" +
			"Name=gpu Type=1g MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30,/dev/nvidia-caps/nvidia-cap31\n", "", true, []int{0}, gpu.Some(1)},
		{"another node's lines", "NodeName=n2 Name=gpu File=/dev/nvidia[0-3]\n", "", false, nil, gpu.Opt[int]{}},
		{"only slurm.conf", "AutoDetect=nvml\n", two, false, nil, gpu.Some(2)},
		{"only slurm.conf, and MIG", "AutoDetect=nvml\n", two, true, nil, gpu.Opt[int]{}},
		{"AutoDetect, remembered", "AutoDetect=nvml\n", two, true, []int{4, 6}, gpu.Some(2)},
		{"another vendor's files", "Name=gpu File=/dev/dri/renderD128\n", "", false, nil, gpu.Opt[int]{}},
		{"nothing", "", "", false, nil, gpu.Opt[int]{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			gres, err := slurmconf.ParseGres("gres.conf", []byte(tt.gres))
			if err != nil {
				t.Fatal(err)
			}
			conf, err := slurmconf.ParseConf("slurm.conf", []byte(tt.conf))
			if err != nil {
				t.Fatal(err)
			}
			n := gpu.Node{GPUs: []gpu.GPU{{}}}
			n.GPUs[0].Health.MIG = gpu.Some(gpu.Switch{Current: tt.mig})
			var detected []slurm.Entry
			if strings.Contains(tt.name, "remembered") {
				detected = []slurm.Entry{{Minor: gpu.Some(6)}, {Minor: gpu.Some(4), MIG: &slurm.MIG{GI: 1}}, {Minor: gpu.Some(4), MIG: &slurm.MIG{GI: 2}}, {Minor: gpu.Some(9), Foreign: true}}
			}
			e := expected(gres.ForNode("n1"), detected, conf, "n1", &n)
			if !slices.Equal(e.Minors, tt.minors) || e.GPUs != tt.gpus {
				t.Errorf("minors %v, GPUs %v; want %v, %v", e.Minors, e.GPUs, tt.minors, tt.gpus)
			}
		})
	}
}

func TestHasCgroups(t *testing.T) {
	for text, want := range map[string]bool{
		"ClusterName=c\n": true, "ProctrackType=proctrack/cgroup\n": true,
		"ProctrackType=proctrack/linuxproc\n": false, "ProctrackType=proctrack/pgid\n": false,
	} {
		conf, err := slurmconf.ParseConf("slurm.conf", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := hasCgroups(conf); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// A MIG device is one with the capability files of its instance; several cards
// handed out as one are none.
func TestExpectedInstances(t *testing.T) {
	gres, err := slurmconf.ParseGres("gres.conf", []byte(`
Name=gpu Type=1g MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21,/dev/nvidia-caps/nvidia-cap22
Name=gpu Type=1g MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30,/dev/nvidia-caps/nvidia-cap31
Name=gpu Type=pair MultipleFiles=/dev/nvidia2,/dev/nvidia3
Name=gpu Type=h100 File=/dev/nvidia1
`))
	if err != nil {
		t.Fatal(err)
	}
	e := expected(gres.ForNode("n1"), nil, slurmconf.Conf{}, "n1", &gpu.Node{})
	if !maps.Equal(e.Instances, map[int]int{0: 2}) {
		t.Errorf("%v", e.Instances)
	}
}
