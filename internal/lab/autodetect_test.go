//go:build e2e

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gpuhooks/internal/node"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/sim"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
	"gpuhooks/internal/slurmctl"
)

const noPlugin = "Slurm's plugin gpu_nvml.so is not here: install slurm-wlm-nvml-plugin (Debian's contrib), or let GPUHOOKS_SLURM_PLUGINS name what scripts/slurm-nvml-plugin prints"

// With AutoDetect the real slurmd detects the cards through the simulated library.
// The health check at its start remembers the list, and jobs are resolved by it:
// also those behind a card that has disappeared since.
func TestAutoDetect(t *testing.T) {
	plugins, ok := NVMLPlugin(os.Getenv("GPUHOOKS_SLURM_PLUGINS"))
	if !ok {
		t.Skip(noPlugin)
	}
	o, err := Options{Nodes: 1, PluginDir: plugins, Log: t.Output()}.FromRepo()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	n := l.Nodes[0]
	devices := readDevices(t, n)
	var uuids []string
	for i, e := range devices.List {
		uuids = append(uuids, e.UUID)
		if minor, _ := e.Minor.Get(); n.Devices[i] != filepath.Join(n.Root(), "dev", fmt.Sprintf("nvidia%d", minor)) {
			t.Errorf("entry %d is /dev/nvidia%d, and NVML's card %d is %s", i, minor, i, n.Devices[i])
		}
	}
	if devices.Source != node.FromSlurmdG || !slices.Equal(uuids, n.UUIDs) {
		t.Fatalf("remembered from %q: %v\nwant NVML's order %v\n%s", devices.Source, uuids, n.UUIDs, n.HookLog())
	}
	p, _ := l.process(n.Name)
	if devices.Slurmd.PID != p.PID || fmt.Sprint(devices.Slurmd.Start) != p.Start {
		t.Errorf("remembered for slurmd %+v, which is %+v", devices.Slurmd, p)
	}

	// A real job, whose prolog slurmd starts.
	id, err := l.Submit(t.Context(), "sleep 1", "--gres=gpu:2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.WaitJob(t.Context(), id, patience, "COMPLETED"); err != nil {
		t.Fatalf("%v\n%s\n%s", err, n.HookLog(), l.Log(n))
	}
	job := readRun(t, n, uint32(id))
	if r := job.Resolution; r.Rule != slurm.ByRemembered || len(r.GPUs) != 2 || r.GPUs[0].UUID != n.UUIDs[0] || r.GPUs[1].UUID != n.UUIDs[1] {
		t.Errorf("job %d (%s): %+v", id, job.Job.GPUs.Job.Or("-"), r)
	}

	// Card 3 is gone from NVML and from the bus, and the others move up there.
	if err := n.Sim.Set("gpu.3.absent=true"); err != nil {
		t.Fatal(err)
	}
	if err := l.SetMode(n, "observe"); err != nil { // the prolog would rightly drain
		t.Fatal(err)
	}
	for place, want := range map[int]string{2: n.UUIDs[2], 5: n.UUIDs[5], 7: n.UUIDs[7], 3: ""} {
		id := uint32(900 + place)
		code, err := l.Hook(t.Context(), n, "prolog.sh", fmt.Sprintf("SLURM_JOB_ID=%d", id), fmt.Sprintf("SLURM_JOB_GPUS=%d", place), fmt.Sprintf("CUDA_VISIBLE_DEVICES=%d", place))
		if err != nil || code != 0 {
			t.Fatalf("prolog: status %d, %v", code, err)
		}
		r := readRun(t, n, id).Resolution
		switch {
		case want == "":
			if r.Verdict != slurm.CannotResolve || len(r.Missing) != 1 || r.Missing[0].UUID != n.UUIDs[place] {
				t.Errorf("the lost card: %+v", r)
			}
		case r.Rule != slurm.ByRemembered || len(r.GPUs) != 1 || r.GPUs[0].UUID != want:
			t.Errorf("place %d: %+v, want %s", place, r, want)
		}
		if code, err := l.Hook(t.Context(), n, "epilog.sh", fmt.Sprintf("SLURM_JOB_ID=%d", id), fmt.Sprintf("SLURM_JOB_GPUS=%d", place)); err != nil || code != 0 {
			t.Errorf("epilog: status %d, %v", code, err)
		}
	}
}

// On a node with MIG instances slurmd 22.05 mixes them with whole cards in an order
// that nothing but slurmd -G tells. Each entry is found by its device files.
func TestSlurmdGWithInstances(t *testing.T) {
	plugins, ok := NVMLPlugin(os.Getenv("GPUHOOKS_SLURM_PLUGINS"))
	if !ok {
		t.Skip(noPlugin)
	}
	dir := t.TempDir()
	n, err := sim.NewNode(filepath.Join(dir, "gpus"), "dgx-a100-mig")
	if err != nil {
		t.Fatal(err)
	}
	// slurmd does not start with a card in MIG mode that has no instance.
	if err := n.Set("gpu.2.mig.mode=false"); err != nil {
		t.Fatal(err)
	}
	// Six cards, two instances and seven: card 0 has a third one behind a hole in
	// NVML's numbers, where slurmd 22.05 stops looking.
	const gres = "gpu:15"
	for name, text := range map[string]string{
		"gres.conf": "AutoDetect=nvml\n",
		"slurm.conf": "ClusterName=x\nSlurmctldHost=h(127.0.0.1)\nAuthType=auth/none\nCredType=cred/none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n" +
			"SlurmdParameters=config_overrides\nGresTypes=gpu\nPluginDir=" + plugins + "\nNodeName=n1 NodeHostname=localhost Port=17001 CPUs=16 Gres=" + gres + "\n",
		"enter.sh":  enter,
		"slurmd.sh": fmt.Sprintf("#!/bin/sh\nexec unshare --mount %s/enter.sh %s slurmd \"$@\"\n", dir, n.Dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := slurmctl.Client{Slurmd: filepath.Join(dir, "slurmd.sh"), Timeout: 20 * time.Second}
	devices, err := c.SlurmdG(t.Context(), filepath.Join(dir, "slurm.conf"), "n1", filepath.Join(dir, "work"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(shared.bin(), "gpu-probe"), "read", "--inventory", "--root", n.Root(), "--nvml", n.Library()).Output()
	if err != nil {
		t.Fatal(err)
	}
	var inv slurm.Inventory
	if err := json.Unmarshal(out, &inv); err != nil {
		t.Fatal(err)
	}
	o := slurm.Options{NodeGres: slurmconf.ParseGresItems(gres), Slurm: slurmconf.Version{Major: 22, Minor: 5, Micro: 8}}
	list, err := slurm.Printed(inv, devices, o)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, e := range list {
		minor, _ := e.Minor.Get()
		word, want := "card", fmt.Sprintf("/dev/nvidia%d", minor)
		if e.MIG != nil {
			word = e.MIG.Profile
			gi := 3 + 135*minor + 9*e.MIG.GI
			want += fmt.Sprintf(",/dev/nvidia-caps/nvidia-cap%d,/dev/nvidia-caps/nvidia-cap%d", gi, gi+1+e.MIG.CI)
		}
		order = append(order, word)
		if e.UUID == "" || e.Files != want {
			t.Errorf("entry %+v, want files %s", e, want)
		}
	}
	t.Logf("slurmd's order: %v", order)
	// Not the order of later versions: whole cards first.
	if i := slices.Index(order, "card"); len(order) != 15 || i < 1 {
		t.Errorf("%d entries, the first card is number %d: %v", len(order), i, order)
	}
	if _, err := slurm.Computed(inv, slurmconf.NodeGres{Auto: "nvml"}, o); err == nil {
		t.Error("an order was computed that only slurmd -G tells")
	}
}

func readDevices(t *testing.T, n *Node) (d node.Devices) {
	t.Helper()
	if err := json.Unmarshal([]byte(ReadFile(filepath.Join(n.Run(), "devices.json"))), &d); err != nil {
		t.Fatalf("devices.json: %v\n%s", err, n.HookLog())
	}
	return d
}

func readRun(t *testing.T, n *Node, id uint32) (j runs.Job) {
	t.Helper()
	name := runs.Name{Job: id}
	if err := json.Unmarshal([]byte(ReadFile(filepath.Join(n.Run(), "runs", name.String(), "job.json"))), &j); err != nil {
		t.Fatalf("job %d: %v\n%s", id, err, n.HookLog())
	}
	return j
}
