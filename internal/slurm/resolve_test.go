package slurm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/slurmconf"
)

// node has n whole GPUs whose minor runs against their index.
func node(n int, version string) Inventory {
	inv := Inventory{Node: "n1", Slurm: version}
	for i := range n {
		inv.GPUs = append(inv.GPUs, InventoryGPU{
			Index: gpu.Some(i), Minor: gpu.Some(n - 1 - i), UUID: uuid(i), PCI: fmt.Sprintf("00000000:%02X:00.0", 16+i),
		})
	}
	return inv
}

func uuid(i int) string { return fmt.Sprintf("GPU-%08d-0000-4000-8000-000000000000", i) }
func migUUID(i int) string {
	return fmt.Sprintf("MIG-%08d-0000-4000-8000-000000000000", i)
}

// migNode has GPU 0 (minor 1) cut into GI 9, 1 and 3 and GPU 1 (minor 0) whole.
func migNode(version string) Inventory {
	inv := node(2, version)
	inv.GPUs[0].MIGMode = true
	inv.GPUs[0].MIG = []InventoryMIG{
		{GI: 9, CI: 0, Profile: "1g.10gb", UUID: migUUID(9)},
		{GI: 1, CI: 0, Profile: "3g.40gb", UUID: migUUID(1)},
		{GI: 3, CI: 0, Profile: "2g.20gb", UUID: migUUID(3)},
	}
	return inv
}

func gres(text string) slurmconf.Gres {
	g, err := slurmconf.ParseGres("gres.conf", []byte(text))
	if err != nil {
		panic(err)
	}
	return g
}

// names is the answer in short: index, or index/gi.
func names(r Resolution) string {
	var out []string
	for _, g := range r.GPUs {
		s := fmt.Sprint(g.Index.Or(-1))
		if g.MIG != nil {
			s += fmt.Sprintf("/%d", g.MIG.GI)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestResolve(t *testing.T) {
	const files = "Name=gpu File=/dev/nvidia[3,2,1,0]" // NVML order of node(4)
	const ranged = "Name=gpu File=/dev/nvidia[0-3]"
	const ctx = " SLURM_SCRIPT_CONTEXT=prolog_slurmd"
	migGres := "Name=gpu MultipleFiles=/dev/nvidia1,/dev/nvidia-caps/nvidia-cap147,/dev/nvidia-caps/nvidia-cap148\nName=gpu File=/dev/nvidia0"
	tests := []struct {
		name string
		env  string // SLURM_JOB_ID is always set
		inv  Inventory
		gres string
		o    Options
		want string // names, or part of the reason
		v    Verdict
		rule Rule
	}{
		{"22.05 file order", "SLURM_JOB_GPUS=0 CUDA_VISIBLE_DEVICES=0" + ctx, node(4, "22.05.8"), files, Options{}, "0", Resolved, ByGresConf},
		{"22.05 range is minor order", "SLURM_JOB_GPUS=0,1" + ctx, node(4, "22.05.8"), ranged, Options{}, "3 2", Resolved, ByGresConf},
		{"lab paths", "SLURM_JOB_GPUS=1" + ctx, node(4, "22.05.8"), "NodeName=n[1-3] Name=gpu File=/tmp/lab/n1/dev/nvidia[3,2,1,0]", Options{}, "1", Resolved, ByGresConf},
		{"23.02 nvml", "SLURM_JOB_GPUS=2,0" + ctx, node(4, "23.02.7"), "AutoDetect=nvml", Options{}, "2 0", Resolved, ByNVMLOrder},
		{"nvml, version unknown, no MIG", "SLURM_JOB_GPUS=2" + ctx, node(4, ""), "AutoDetect=nvml", Options{}, "2", Resolved, ByNVMLOrder},
		{"24.11 nvidia", "SLURM_JOB_GPUS=0" + ctx, node(4, "24.11.5"), "AutoDetect=nvidia", Options{}, "3", Resolved, ByMinorOrder},
		{"25.11 UUIDs", "SLURM_JOB_GPUS=0,1 CUDA_VISIBLE_DEVICES=" + uuid(0) + "," + uuid(1) + ctx, node(4, "25.11.2"), "AutoDetect=nvml", Options{}, "0 1", Resolved, ByUUID},
		{"25.11 UUID beside a number", "SLURM_JOB_GPUS=0,1 CUDA_VISIBLE_DEVICES=" + uuid(0) + ",1" + ctx, node(4, "25.11.2"), "AutoDetect=nvml", Options{}, "0 1", Resolved, ByUUID},
		{"UUID and number do not pair", "SLURM_JOB_GPUS=0,1,2 CUDA_VISIBLE_DEVICES=" + uuid(0) + ",1" + ctx, node(4, "25.11.2"), "AutoDetect=nvml", Options{}, "mixes names and numbers", CannotResolve, ""},
		{"26.05 full, orders differ", "SLURM_JOB_GPUS=0" + ctx, node(4, "26.05.3"), "AutoDetect=full", Options{}, "differ on this node", CannotResolve, ""},
		{"26.05 full, one GPU", "SLURM_JOB_GPUS=0" + ctx, node(1, "26.05.3"), "AutoDetect=full", Options{}, "0", Resolved, ByAnyOrder},
		{"26.05 full, all GPUs", "SLURM_JOB_GPUS=0,1,2,3" + ctx, node(4, "26.05.3"), "AutoDetect=full", Options{}, "0 1 2 3", Resolved, ByWholeNode},
		{"abbreviated UUID", "SLURM_JOB_GPUS=0 CUDA_VISIBLE_DEVICES=gpu-00000001" + ctx, node(4, "25.11.2"), "", Options{}, "1", Resolved, ByUUID},
		{"ambiguous UUID", "SLURM_JOB_GPUS=0 CUDA_VISIBLE_DEVICES=GPU-0000" + ctx, node(4, "25.11.2"), "", Options{}, "not among the 4 GPUs", CannotResolve, ""},
		{"UUID not shown", "SLURM_JOB_GPUS=0 CUDA_VISIBLE_DEVICES=" + uuid(7) + ctx, node(4, "25.11.2"), "", Options{}, "not among the 4 GPUs", CannotResolve, ""},

		{"MIG UUID", "SLURM_JOB_GPUS=2 CUDA_VISIBLE_DEVICES=" + migUUID(3) + ctx, migNode("23.11.8"), "AutoDetect=nvml", Options{}, "0/3", Resolved, ByUUID},
		{"MIG order 24.11", "SLURM_JOB_GPUS=0,1,2,3" + ctx, migNode("24.11.5"), "AutoDetect=nvml", Options{}, "1 0/1 0/3 0/9", Resolved, ByNVMLOrder},
		{"MIG order 22.05", "SLURM_JOB_GPUS=0" + ctx, migNode("22.05.8"), "AutoDetect=nvml", Options{}, "only `slurmd -G` tells", CannotResolve, ""},
		{"MIG order unknown version", "SLURM_JOB_GPUS=0" + ctx, migNode(""), "AutoDetect=nvml", Options{}, "version, which is not known", CannotResolve, ""},
		{"MIG order from the option", "SLURM_JOB_GPUS=0" + ctx, migNode(""), "AutoDetect=nvml", Options{Slurm: slurmconf.Version{Major: 24, Minor: 11}}, "1", Resolved, ByNVMLOrder},
		{"MIG, every device", "SLURM_JOB_GPUS=0,1,2,3" + ctx, migNode("22.05.8"), "AutoDetect=nvml", Options{}, "0/1 0/3 0/9 1", Resolved, ByWholeNode},
		{"MultipleFiles", "SLURM_JOB_GPUS=0,1" + ctx, migNode("24.11.5"), migGres, Options{}, "0/1 1", Resolved, ByGresConf},
		{"GI capability alone", "SLURM_JOB_GPUS=0" + ctx, migNode("24.11.5"), "Name=gpu File=/dev/nvidia-caps/nvidia-cap165", Options{}, "0/3", Resolved, ByGresConf},
		{"capabilities of another card", "SLURM_JOB_GPUS=0" + ctx, migNode("24.11.5"), "Name=gpu MultipleFiles=/dev/nvidia1,/dev/nvidia-caps/nvidia-cap12,/dev/nvidia-caps/nvidia-cap13", Options{}, "not among the 2 NVIDIA GPUs", CannotResolve, ""},

		{"slurmd -G wins", "SLURM_JOB_GPUS=0" + ctx, node(4, "22.05.8"), ranged, Options{Detected: []slurmconf.Device{{Files: []string{"/dev/nvidia2"}}}}, "1", Resolved, BySlurmdG},
		{"a card has gone since slurmd's start", "SLURM_JOB_GPUS=2" + ctx, node(3, "24.11.5"), "AutoDetect=nvml", Options{NodeGres: slurmconf.ParseGresItems("gpu:4")}, "gives this node 4 GPUs and the driver shows 3", CannotResolve, ""},
		{"Slurm uses fewer than there are", "SLURM_JOB_GPUS=0" + ctx, node(4, "24.11.5"), "AutoDetect=nvml", Options{NodeGres: slurmconf.ParseGresItems("gpu:h100:2")}, "gives this node 2 GPUs", CannotResolve, ""},
		{"beyond the list", "SLURM_JOB_GPUS=4" + ctx, node(4, "24.11.5"), files, Options{}, "has 4, and the list has 4 devices", CannotResolve, ""},
		{"file of a card not shown", "SLURM_JOB_GPUS=5" + ctx, node(4, "24.11.5"), "Name=gpu File=/dev/nvidia[0-7]", Options{}, "/dev/nvidia5: not among the 4", CannotResolve, ""},
		{"no driver", "SLURM_JOB_GPUS=0,3" + ctx, node(0, "24.11.5"), ranged, Options{}, "job GPUs 0,3, and this node shows no NVIDIA GPU", CannotResolve, ""},
		{"no gres.conf", "SLURM_JOB_GPUS=0" + ctx, node(4, "24.11.5"), "", Options{}, "neither a gpu line", CannotResolve, ""},
		{"lines for other nodes only", "SLURM_JOB_GPUS=0 SLURMD_NODENAME=n9" + ctx, node(4, "24.11.5"), "NodeName=n[1-3] Name=gpu File=/dev/nvidia0", Options{}, "neither a gpu line", CannotResolve, ""},
		{"not a number", "SLURM_JOB_GPUS=0,x" + ctx, node(4, "24.11.5"), files, Options{}, "is not a device number", CannotResolve, ""},
		{"AMD detection", "SLURM_JOB_GPUS=0 ROCR_VISIBLE_DEVICES=0" + ctx, node(1, "24.11.5"), "AutoDetect=rsmi", Options{}, "another vendor", CannotResolve, ""},
		{"AMD files", "SLURM_JOB_GPUS=0" + ctx, node(0, "24.11.5"), "Name=gpu File=/dev/dri/renderD[128,136]", Options{}, "gres.conf has /dev/dri/renderD128", CannotResolve, ""},
		{"two vendors", "SLURM_JOB_GPUS=0,1" + ctx, node(1, "24.11.5"), "Name=gpu File=/dev/dri/renderD128,/dev/nvidia0", Options{}, "0", Resolved, ByGresConf},
		{"repeated", "SLURM_JOB_GPUS=1,1,0-1" + ctx, node(4, "24.11.5"), "AutoDetect=nvml", Options{}, "1 0", Resolved, ByNVMLOrder},

		{"20.11 minor", "CUDA_VISIBLE_DEVICES=3" + ctx, node(4, "20.11.9"), files, Options{}, "0", Resolved, ByMinor},
		{"20.11 AutoDetect", "CUDA_VISIBLE_DEVICES=3" + ctx, node(4, "20.11.9"), "AutoDetect=nvml", Options{}, "0", Resolved, ByMinor},
		{"20.11 by its environment", "CUDA_VISIBLE_DEVICES=3" + ctx, node(4, ""), files, Options{}, "0", Resolved, ByMinor},
		{"24.11 without SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES=3" + ctx, node(4, "24.11.5"), files, Options{}, "somebody changed this environment", CannotResolve, ""},

		{"local numbers in a job", "CUDA_VISIBLE_DEVICES=0 SLURM_NODEID=0", node(4, "24.11.5"), files, Options{}, "count from 0 within the job", CannotResolve, ""},
		{"a step has fewer", "SLURM_JOB_GPUS=0,1,2 SLURM_STEP_GPUS=2 CUDA_VISIBLE_DEVICES=0 SLURM_STEP_ID=0", node(4, "24.11.5"), files, Options{}, "2", Resolved, ByGresConf},
		{"none", strings.TrimSpace(ctx), node(4, "24.11.5"), files, Options{}, "no GPU variable", NoGPUs, ""},
		{"none, empty", "SLURM_JOB_GPUS= CUDA_VISIBLE_DEVICES=NoDevFiles" + ctx, node(4, "24.11.5"), files, Options{}, "no GPU variable", NoGPUs, ""},
		{"controller", "SLURM_SCRIPT_CONTEXT=prolog_slurmctld", node(4, "24.11.5"), files, Options{}, "not told", CannotResolve, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, err := FromEnv(append(strings.Fields(tt.env), "SLURM_JOB_ID=1"))
			if err != nil {
				t.Fatal(err)
			}
			r := Resolve(j, tt.inv, gres(tt.gres), tt.o)
			if r.Verdict != tt.v || r.Rule != tt.rule {
				t.Errorf("%s by %q: %s", r.Verdict, r.Rule, r.Reason)
			}
			if tt.v == Resolved {
				if names(r) != tt.want {
					t.Errorf("GPUs %q, want %q", names(r), tt.want)
				}
			} else if !strings.Contains(r.Reason, tt.want) || len(r.GPUs) != 0 {
				t.Errorf("reason %q lacks %q, or has GPUs %q", r.Reason, tt.want, names(r))
			}
		})
	}
}

func TestNodeMode(t *testing.T) {
	j, err := FromEnv([]string{"SLURMD_NODENAME=n1", "CUDA_VISIBLE_DEVICES=0"})
	if err != nil {
		t.Fatal(err)
	}
	if r := Resolve(j, node(4, "24.11.5"), gres("AutoDetect=nvml"), Options{}); r.Verdict != NodeMode || len(r.GPUs) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestMissing(t *testing.T) {
	j := Job{ID: 1, Context: Prolog, NodeName: "n1"}
	j.GPUs.Job = gpu.Some("1,2")
	r := Resolve(j, node(2, "24.11.5"), gres("Name=gpu File=/dev/nvidia[0-3]"), Options{})
	if len(r.Missing) != 1 || r.Missing[0].Minor != gpu.Some(2) {
		t.Errorf("missing %+v", r.Missing)
	}
	r = Resolve(j, Inventory{}, gres("Name=gpu File=/dev/nvidia[0-3]"), Options{})
	if len(r.Missing) != 2 || r.Missing[1].Minor != gpu.Some(2) {
		t.Errorf("without a driver: missing %+v", r.Missing)
	}
}

func TestCrossCheck(t *testing.T) {
	j := Job{ID: 1, Context: Prolog}
	j.GPUs.Job, j.GPUs.CUDA = gpu.Some("0"), gpu.Some(uuid(3))
	r := Resolve(j, node(4, "25.11.2"), gres("AutoDetect=nvml"), Options{})
	if names(r) != "3" || !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "the UUIDs count") }) {
		t.Errorf("%+v", r)
	}
}

func TestSharing(t *testing.T) {
	tests := []struct {
		gres, slurm string
		mps         bool
		want        Sharing
		shared      bool
	}{
		{"AutoDetect=nvml", "gpu:4", false, NotShared, false},
		{"AutoDetect=nvml", "gpu:4,shard:16", false, SharedShard, true},
		{"Name=gpu File=/dev/nvidia[0-3]\nName=shard Count=16", "", false, SharedShard, true},
		{"AutoDetect=nvml", "gpu:4,mps:400", false, NotShared, false},
		{"AutoDetect=nvml", "gpu:4,mps:400", true, SharedMPS, true},
		{"AutoDetect=nvml", "", false, SharingUnknown, false},
	}
	for _, tt := range tests {
		j := Job{ID: 1, Context: Prolog}
		j.GPUs.Job = gpu.Some("0")
		if tt.mps {
			j.GPUs.MPS = gpu.Some("25")
		}
		r := Resolve(j, node(4, "24.11.5"), gres(tt.gres), Options{NodeGres: slurmconf.ParseGresItems(tt.slurm)})
		if r.Verdict != Resolved || r.Sharing != tt.want || r.Shared != tt.shared {
			t.Errorf("%+v: %s, %s, shared %v", tt, r.Verdict, r.Sharing, r.Shared)
		}
	}
}

func TestInventoryOf(t *testing.T) {
	n := &gpu.Node{GPUs: []gpu.GPU{{
		Identity:  gpu.Identity{Index: 0, Minor: gpu.Some(1), UUID: uuid(0), PCI: "00000000:10:00.0"},
		Health:    gpu.Health{MIG: gpu.Some(gpu.Switch{Current: true})},
		Instances: []gpu.Instance{{GI: 3, CI: 0, UUID: migUUID(3), Profile: "2g.20gb"}},
	}}}
	caps := host.MIGMinors{{GPU: 1, GI: 3, CI: -1}: 500, {GPU: 1, GI: 3, CI: 0}: 501}
	inv := InventoryOf(n, "n1", "24.11.5", caps)
	j := Job{ID: 1, Context: Prolog}
	j.GPUs.Job = gpu.Some("0")
	r := Resolve(j, inv, gres("Name=gpu MultipleFiles=/dev/nvidia1,/dev/nvidia-caps/nvidia-cap500,/dev/nvidia-caps/nvidia-cap501"), Options{})
	if names(r) != "0/3" || len(r.Warnings) != 0 {
		t.Errorf("%+v", r)
	}
}
