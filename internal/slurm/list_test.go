package slurm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurmconf"
)

// inProlog is a job's environment as slurmd makes it.
func inProlog(t *testing.T, gpus string) Job {
	t.Helper()
	j, err := FromEnv([]string{"SLURM_JOB_ID=1", "SLURMD_NODENAME=n1", "SLURM_SCRIPT_CONTEXT=prolog_slurmd", "SLURM_JOB_GPUS=" + gpus, "CUDA_VISIBLE_DEVICES=" + gpus})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func gresItems(n int) []slurmconf.GresItem { return slurmconf.ParseGresItems(fmt.Sprintf("gpu:%d", n)) }

// A computed list, remembered, gives the answers that it gave when it was made.
func TestComputedIsWhatResolveUses(t *testing.T) {
	for _, auto := range []string{"nvml", "nvidia"} {
		g := gres("AutoDetect=" + auto)
		for _, inv := range []Inventory{node(4, "24.11.5"), migNode("24.11.5")} {
			count := len(inv.GPUs)
			if auto == "nvml" && len(inv.GPUs[0].MIG) > 0 {
				count = 4 // a whole card and three instances
			}
			o := Options{NodeGres: gresItems(count)}
			list, err := Computed(inv, g.ForNode("n1"), o)
			if err != nil || len(list) != count {
				t.Fatalf("%s: %+v, %v", auto, list, err)
			}
			for i := range list {
				want := Resolve(inProlog(t, fmt.Sprint(i)), inv, g, o)
				o2 := o
				o2.Remembered = &List{Entries: list, Source: "somewhere"}
				got := Resolve(inProlog(t, fmt.Sprint(i)), inv, g, o2)
				if names(got) != names(want) || got.Rule != ByRemembered || got.Reason != "by remembered: somewhere" {
					t.Errorf("%s, place %d: %+v, computed %+v", auto, i, got, want)
				}
			}
		}
	}
}

func TestComputedOnlyWhenCertain(t *testing.T) {
	lost := node(4, "24.11.5")
	lost.GPUs[1].Index = gpu.Opt[int]{}
	for _, tt := range []struct {
		name, auto string
		inv        Inventory
		gres       []slurmconf.GresItem
		want       string
	}{
		{"fewer cards than configured", "nvml", node(3, "24.11.5"), gresItems(4), "4 GPUs and the driver shows 3"},
		{"number not known", "nvml", node(4, "24.11.5"), nil, "does not tell how many"},
		{"no AutoDetect", "off", node(4, "24.11.5"), gresItems(4), "no AutoDetect"},
		{"a card that NVML does not show", "nvml", lost, gresItems(4), "no NVML index"},
		{"MIG before 23.02.7", "nvml", migNode("22.05.8"), gresItems(4), "slurmd -G"},
		{"MIG, version unknown", "nvml", migNode(""), gresItems(4), "slurmd -G"},
		{"two ways that differ", "full", node(4, "26.05.3"), gresItems(4), "slurmd -G"},
		{"another vendor's", "rsmi", node(4, "26.05.3"), gresItems(4), "another vendor's"},
		{"a card twice", "nvml", Inventory{Slurm: "24.11.5", GPUs: append(node(1, "").GPUs, node(1, "").GPUs...)}, gresItems(2), "there twice"},
	} {
		_, err := Computed(tt.inv, gres("AutoDetect="+tt.auto).ForNode("n1"), Options{NodeGres: tt.gres})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// The case of 22.05.8: the printed list is remembered, and then the third of its
// devices disappears, and an instance is made anew.
func TestPrintedIsRemembered(t *testing.T) {
	job, inv, g, o := readCase(t, "D25-mixed-mig-node-2205-order")
	o.NodeGres = gresItems(4)
	list, err := Printed(inv, o.Detected, o)
	if err != nil {
		t.Fatal(err)
	}
	o = Options{NodeGres: o.NodeGres, Remembered: &List{Entries: list, Source: "slurmd -G"}}
	if r := Resolve(job, inv, g, o); names(r) != "1" || r.Rule != ByRemembered {
		t.Errorf("%+v", r)
	}
	whole := inv.GPUs[1]
	inv.GPUs = inv.GPUs[:1]
	r := Resolve(job, inv, g, o)
	if r.Verdict != CannotResolve || len(r.Missing) != 1 || r.Missing[0].UUID != whole.UUID || r.Missing[0].Minor != whole.Minor || r.Missing[0].PCI != whole.PCI {
		t.Errorf("the card is gone: %+v", r)
	}
	for place, want := range map[string]string{"0": "0/1", "1": "0/3", "3": "0/9"} {
		if r := Resolve(inProlog(t, place), inv, g, o); names(r) != want {
			t.Errorf("place %s: %+v, want %s", place, r, want)
		}
	}
	inv.GPUs[0].MIG = slices.Clone(inv.GPUs[0].MIG)
	inv.GPUs[0].MIG[2].UUID = migUUID(77)
	if r := Resolve(inProlog(t, "3"), inv, g, o); r.Verdict != CannotResolve || r.Missing[0].MIG.GI != 9 {
		t.Errorf("an instance made anew: %+v", r)
	}
	if _, err := Printed(inv, o.Detected, Options{NodeGres: gresItems(3)}); err == nil {
		t.Error("nothing printed, three configured: no error")
	}
}

// A device that the driver did not show when the list was made is known by its
// files alone, and never taken for the whole card that it is a part of.
func TestRememberedByFiles(t *testing.T) {
	inv := migNode("22.05.8")
	devices := []slurmconf.Device{
		{Files: []string{"/dev/nvidia0"}},
		{Files: []string{"/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap900", "/dev/nvidia-caps/nvidia-cap901"}},
		{Files: []string{"/dev/nvidia7"}},
		{Files: []string{"/dev/dri/renderD128"}},
	}
	list, err := Printed(inv, devices, Options{NodeGres: gresItems(4)})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{NodeGres: gresItems(4), Remembered: &List{Entries: list}}
	for place, want := range map[string]string{"0": "1", "1": "", "2": "", "3": "", "4": ""} {
		r := Resolve(inProlog(t, place), inv, gres("AutoDetect=nvml"), o)
		if names(r) != want || (want == "") != (r.Verdict == CannotResolve) {
			t.Errorf("place %s: %+v", place, r)
		}
	}
	inv.GPUs = append(inv.GPUs, InventoryGPU{Index: gpu.Some(2), Minor: gpu.Some(7), UUID: uuid(2)})
	if r := Resolve(inProlog(t, "2"), inv, gres("AutoDetect=nvml"), o); names(r) != "2" {
		t.Errorf("shown later: %+v", r)
	}
	// A remembered list is of a detecting slurmd: it does not count without AutoDetect.
	if r := Resolve(inProlog(t, "0"), inv, gres("Name=gpu File=/dev/nvidia1"), o); names(r) != "0" || r.Rule != ByGresConf {
		t.Errorf("no AutoDetect: %+v", r)
	}
}

func TestCheckEntries(t *testing.T) {
	a := Entry{UUID: uuid(0), Minor: gpu.Some(0)}
	for name, tt := range map[string]struct {
		list []Entry
		ok   bool
	}{
		"two":               {[]Entry{a, {UUID: uuid(1)}}, true},
		"an instance of it": {[]Entry{a, {UUID: uuid(0), MIG: &MIG{GI: 1}}, {UUID: uuid(0), MIG: &MIG{GI: 2}}}, true},
		"by files":          {[]Entry{{Files: "/dev/nvidia0"}, {Files: "/dev/nvidia1"}, {Minor: gpu.Some(2)}}, true},
		"none":              {nil, false},
		"twice":             {[]Entry{a, {UUID: strings.ToLower(uuid(0))}}, false},
		"empty":             {[]Entry{a, {}}, false},
		"too many":          {make([]Entry, 1025), false},
	} {
		if err := CheckEntries(tt.list); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
