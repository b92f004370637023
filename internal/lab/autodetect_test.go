//go:build e2e

package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gpuhooks/internal/node"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurm"
)

// With AutoDetect the real slurmd detects the cards through the simulated library.
// The health check at its start remembers the list, and jobs are resolved by it:
// also those behind a card that has disappeared since.
func TestAutoDetect(t *testing.T) {
	plugins, ok := NVMLPlugin(os.Getenv("GPUHOOKS_SLURM_PLUGINS"))
	if !ok {
		t.Skip("Slurm's plugin gpu_nvml.so is not here: Debian's slurm-wlm-nvml-plugin (contrib), or unpacked and named by GPUHOOKS_SLURM_PLUGINS")
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
