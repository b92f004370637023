package sim_test

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/sim"
)

// The readers of the product find in the root what the scenario says.
func TestWhatSurroundsTheGPUs(t *testing.T) {
	n, err := sim.NewNode(t.TempDir(), "dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	look := func() gpu.Host {
		t.Helper()
		return host.NewFS(n.Root()).Surroundings(nil, time.Now().Add(10*time.Second))
	}
	healthy := gpu.Host{
		Daemons:    []string{"nv-fabricmanager", "nvidia-persistenced"},
		NVSwitches: 4,
		GPUDirect:  gpu.Some(gpu.GPUDirect{Peermem: true, DMABuf: true}),
		Clock:      gpu.Some(gpu.Clock{Synchronised: true, MaxError: 0.0005}),
	}
	if got := look(); !reflect.DeepEqual(got, healthy) {
		t.Errorf("got  %+v\nwant %+v", got, healthy)
	}
	err = n.Set("host.daemons=nv-hostengine", "host.stuck.2000=name=python,job=77,switches=7", "host.stuck.2001=in=nfs_file_read,module=nfs",
		"host.clock=unsynchronised 16", "host.peermem=false", "ib=2", "ib.1.state=DOWN", "ib.1.physical=Polling", "ib.1.link_downed=3")
	if err != nil {
		t.Fatal(err)
	}
	port := gpu.Port{Device: "mlx5_0", Port: 1, State: "active", Physical: "linkup", Layer: "infiniband", Rate: gpu.Some(400.0),
		Counters: gpu.Counters{"link_downed": 0, "local_link_integrity_errors": 0}}
	down := port
	down.Device, down.State, down.Physical = "mlx5_1", "down", "polling"
	down.Counters = gpu.Counters{"link_downed": 3, "local_link_integrity_errors": 0}
	want := gpu.Host{
		Stuck: []gpu.Stuck{{PID: 2000, TID: 2000, Name: "python", Where: "os_acquire_mutex [nvidia]", Start: gpu.Some[uint64](5000), Job: "77",
			Switches: gpu.Some[uint64](7)}},
		Daemons:    []string{"nv-hostengine"},
		NVSwitches: 4,
		GPUDirect:  gpu.Some(gpu.GPUDirect{DMABuf: true}),
		Clock:      gpu.Some(gpu.Clock{MaxError: 16}),
		Ports:      []gpu.Port{port, down},
	}
	if got := look(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := n.Unset("host.daemons", "host.stuck.2000", "host.stuck.2001", "host.clock", "host.peermem", "ib", "ib.1.state", "ib.1.physical", "ib.1.link_downed"); err != nil {
		t.Fatal(err)
	}
	if got := look(); !reflect.DeepEqual(got, healthy) {
		t.Errorf("after all was taken back: got %+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(n.Root(), "sim/proc/*")); len(left) != 2 {
		t.Errorf("left over: %v", left)
	}
}
