//go:build cgo

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
)

func TestSampleARun(t *testing.T) {
	b := newBed(t, "1s", "dgx-h100", "gpu.0.sm=0.82", "gpu.0.tensor=0.46", "gpu.0.util=1", "gpu.0.memory.used=10GiB", "gpu.0.power=500")
	n := b.begin(1, 0, 1)
	p := b.sampler()
	b.samples(n)
	time.Sleep(1200 * time.Millisecond)
	if err := b.node.Xid(1, 94, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.node.Xid(5, 79, ""); err != nil { // not the run's
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	s, took := b.end(n)
	p.leaves(t, 2*time.Second)
	t.Logf("final sums after %v", took)
	if len(s.Devices) != 2 || s.EventsIncomplete {
		t.Fatalf("%d devices, incomplete %v", len(s.Devices), s.EventsIncomplete)
	}
	d := s.Devices[0]
	near(t, "SM active", d.Stats[gpu.SMActive].Mean, 0.82, 0.01)
	near(t, "tensor active", d.Stats[gpu.TensorActive].Mean, 0.46, 0.01)
	near(t, "GPU-Util", d.Stats[gpu.Utilization].Mean, 1, 0.01)
	near(t, "memory", d.Stats[gpu.MemoryUsed].Mean, 10<<30, 0.01)
	near(t, "power", d.Stats[gpu.Power].Mean, 500, 0.01)
	near(t, "covered", d.Covered, 3.2, 0.15)
	if d.UUID != b.ids[0].UUID || d.Source != gpu.SourceGPM || d.Gaps != 0 || d.Resets != 0 || len(d.Faults) != 0 || d.Idle.Or(-1) > 0.2 || len(d.Series[gpu.SMActive]) < 3 {
		t.Errorf("%+v", d)
	}
	if idle := s.Devices[1]; idle.Idle.Or(0) < 2.9 || idle.Stats[gpu.SMActive].Max != 0 || idle.LastActive.IsSet() {
		t.Errorf("the idle GPU: %+v", idle)
	}
	if len(s.Events) != 1 || s.Events[0].Code != 94 || s.Events[0].UUID != b.ids[1].UUID {
		t.Errorf("events %+v", s.Events)
	}
	if _, err := os.Stat(filepath.Join(string(b.dir), driver.SamplerLock)); err != nil {
		t.Error(err)
	}
}

func TestSampleShortJobSeesItsProcess(t *testing.T) {
	b := newBed(t, "5s", "dgx-h100")
	n := b.begin(1, 2)
	b.sampler()
	b.samples(n)
	load := b.load("--gpus", "2", "--sm", "0.5", "--util", "1", "--memory", "4GiB", "--for", "2500ms")
	_ = load.Wait()
	points := runs.CheckpointsIn(filepath.Join(string(b.dir), "spool"))
	for range 200 { // should the node crash now
		if _, err := points.Read(n); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if c, err := points.Read(n); err != nil || c.Job.BootID != b.boot || len(c.Sums.Devices) != 1 || c.Sums.Devices[0].Stats[gpu.SMActive].Mean == 0 {
		t.Errorf("checkpoint: %v, %+v", err, c)
	}
	s, _ := b.end(n)
	d := s.Devices[0]
	covered := s.To.Sub(s.From).Seconds()
	near(t, "SM active", d.Stats[gpu.SMActive].Mean, 0.5*2.5/covered, 0.05)
	near(t, "memory", d.Stats[gpu.MemoryUsed].Max, 4<<30, 0.01)
	if len(d.Processes) != 1 || d.Processes[0].PID != load.Process.Pid {
		t.Errorf("processes %+v", d.Processes)
	}
}

func TestRunsOnOneGPUCostNoMoreCalls(t *testing.T) {
	b := newBed(t, "500ms", "dgx-h100", "count_calls=true", "gpu.0.sm=0.3", "gpu.0.util=0.5")
	one := b.begin(1, 0)
	b.sampler()
	b.samples(one)
	count := func() int {
		if err := b.node.ResetCalls(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		c, err := b.node.Calls()
		if err != nil {
			t.Fatal(err)
		}
		if c["nvmlGpmSampleAlloc"] > 2 {
			t.Errorf("samples are not used again: %d allocations", c["nvmlGpmSampleAlloc"])
		}
		return perGPU(c)[0] + c["nvmlGpmMetricsGet"]
	}
	alone := count()
	if perTick := float64(alone) / 4; perTick > 8+8.0/4 { // a tick more or less
		t.Errorf("%.1f calls a tick", perTick)
	}
	var all []runs.Name
	for job := uint32(2); job <= 8; job++ {
		n := b.begin(job, 0)
		b.samples(n)
		all = append(all, n)
	}
	if together := count(); together > alone+8 {
		t.Errorf("%d calls for eight runs, %d for one", together, alone)
	}
	for _, n := range append(all, one) {
		s, _ := b.end(n)
		near(t, n.String(), s.Devices[0].Stats[gpu.SMActive].Mean, 0.3, 0.01)
	}
}

func TestSamplerIsKilledAndStartedAgain(t *testing.T) {
	b := newBed(t, "1s", "dgx-h100", "gpu.0.sm=0.4")
	n := b.begin(1, 0)
	p := b.sampler()
	b.samples(n)
	for range 400 { // its first checkpoint
		if _, err := b.dir.ReadSums(n, b.boot); err == nil {
			break
		}
		if err := b.node.Set("gpu.0.sm=0.4"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		_ = p.Process.Signal(syscall.SIGTERM) // writes what it has
	}
	<-p.gone
	first, err := b.dir.ReadSums(n, b.boot)
	if err != nil || first.Final {
		t.Fatalf("%v, final %v", err, first.Final)
	}
	q := b.sampler()
	b.samples(n)
	_ = q.Process.Kill()
	<-q.gone
	r := b.sampler()
	time.Sleep(1500 * time.Millisecond)
	s, _ := b.end(n)
	r.leaves(t, 2*time.Second)
	d := s.Devices[0]
	if !s.From.Equal(first.From) || d.Gaps == 0 {
		t.Errorf("from %v, before %v; gaps %d", s.From, first.From, d.Gaps)
	}
	near(t, "SM active", d.Stats[gpu.SMActive].Mean, 0.4, 0.02)
}

func TestSecondSamplerLeaves(t *testing.T) {
	b := newBed(t, "1s", "dgx-h100")
	n := b.begin(1, 0)
	first := b.sampler()
	b.samples(n)
	b.sampler().leaves(t, 3*time.Second)
	b.end(n)
	first.leaves(t, 2*time.Second)
}

func TestSamplerWithoutRunsLeaves(t *testing.T) {
	b := newBed(t, "1s", "dgx-h100")
	b.sampler().leaves(t, 2*time.Second)
}

func TestReleaseRequest(t *testing.T) {
	b := newBed(t, "5s", "dgx-h100", "gpu.0.sm=0.4")
	n := b.begin(1, 0)
	p := b.sampler()
	b.samples(n)
	if err := os.WriteFile(filepath.Join(string(b.dir), driver.ReleaseRequest), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.leaves(t, 2*time.Second)
	if s, err := b.dir.ReadSums(n, b.boot); err != nil || s.Final {
		t.Errorf("%v, final %v", err, s.Final)
	}
	b.sampler().leaves(t, 2*time.Second) // nobody comes while it stands
}

func TestGPULostWhileSampled(t *testing.T) {
	b := newBed(t, "200ms", "dgx-h100", "gpu.0.sm=0.4", "gpu.1.sm=0.6")
	n := b.begin(1, 0, 1)
	b.sampler()
	b.samples(n)
	time.Sleep(600 * time.Millisecond)
	if err := b.node.Set("gpu.0.lost=true"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(600 * time.Millisecond)
	if err := b.node.Clear(0); err != nil { // a reset brings it back
		t.Fatal(err)
	}
	time.Sleep(800 * time.Millisecond)
	s, _ := b.end(n)
	d := s.Devices[0]
	if d.Gaps == 0 || d.Resets == 0 || !gpu.HasFault(d.Faults, gpu.FaultLost) {
		t.Errorf("gaps %d, resets %d, faults %v", d.Gaps, d.Resets, d.Faults)
	}
	near(t, "SM active of the lost GPU", d.Stats[gpu.SMActive].Mean, 0.4, 0.02)
	d = s.Devices[1]
	if d.Gaps != 0 || d.Resets != 0 || len(d.Faults) != 0 {
		t.Errorf("the other: gaps %d, resets %d, faults %v", d.Gaps, d.Resets, d.Faults)
	}
	near(t, "SM active of the other", d.Stats[gpu.SMActive].Mean, 0.6, 0.01)
}

func TestCallThatHangsCostsOneGPU(t *testing.T) {
	b := newBed(t, "200ms", "dgx-h100", "gpu.1.sm=0.6")
	n := b.begin(1, 0, 1)
	b.sampler()
	b.samples(n)
	if err := b.node.Set("gpu.0.call.nvmlDeviceGetFieldValues=hang"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	s, took := b.end(n)
	if took > 500*time.Millisecond {
		t.Errorf("final sums after %v", took)
	}
	if d := s.Devices[0]; !gpu.HasFault(d.Faults, gpu.FaultTimeout) {
		t.Errorf("faults %v", d.Faults)
	}
	near(t, "SM active of the other", s.Devices[1].Stats[gpu.SMActive].Mean, 0.6, 0.01)
}

func TestSampleWithoutGPM(t *testing.T) {
	b := newBed(t, "500ms", "rtx4000-ada", "gpu.0.util=0.7")
	n := b.begin(1, 0)
	b.sampler()
	b.samples(n)
	time.Sleep(1600 * time.Millisecond)
	s, _ := b.end(n)
	d := s.Devices[0]
	if _, ok := d.Stats[gpu.SMActive]; ok || d.Source != gpu.SourceNVML || len(d.Faults) != 0 {
		t.Errorf("source %s, faults %v, stats %v", d.Source, d.Faults, d.Stats)
	}
	near(t, "GPU-Util", d.Stats[gpu.Utilization].Mean, 0.7, 0.02)
}

func TestSampleMIG(t *testing.T) {
	b := newBed(t, "500ms", "dgx-h100", "gpu.1.mig.mode=true",
		"gpu.1.mig.0=gi=5,ci=0,profile=1g.10gb,start=6,size=1,uuid=MIG-11111111-1111-4111-8111-111111111111")
	g := b.ids[1]
	n := b.beginWith(1, []runs.DevicePoint{{Identity: g.Identity, Instance: &g.Instances[0]}})
	b.sampler()
	b.samples(n)
	b.load("--gpus", g.Instances[0].UUID, "--sm", "0.5", "--memory", "2GiB", "--for", "10s")
	time.Sleep(1800 * time.Millisecond)
	s, _ := b.end(n)
	d := s.Devices[0]
	if d.UUID != g.Instances[0].UUID || d.Source != gpu.SourceGPM || d.Stats[gpu.SMActive].Max == 0 || len(d.Faults) != 0 {
		t.Errorf("%+v", d)
	}
	near(t, "memory", d.Stats[gpu.MemoryUsed].Max, 2<<30, 0.1)
}

func TestDriverReloadIsAReset(t *testing.T) {
	b := newBed(t, "200ms", "dgx-h100", "gpu.0.sm=0.4")
	n := b.begin(1, 0)
	p := b.sampler()
	b.samples(n)
	time.Sleep(500 * time.Millisecond)
	if err := b.node.Set("driver.loaded=false"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(700 * time.Millisecond)
	if err := b.node.Set("driver.loaded=true"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(800 * time.Millisecond)
	s, _ := b.end(n)
	p.leaves(t, 2*time.Second)
	if d := s.Devices[0]; d.Gaps == 0 && d.Resets == 0 {
		t.Errorf("gaps %d, resets %d, faults %v", d.Gaps, d.Resets, d.Faults)
	} else {
		near(t, "SM active", d.Stats[gpu.SMActive].Mean, 0.4, 0.02)
	}
}

// A run comes while the sampler leaves: whoever plays prolog starts another one
// only if the lock is free, and none stays unsampled.
func TestNoRunIsLostWhileSamplersLeave(t *testing.T) { churn(t, 40) }

func churn(t *testing.T, jobs uint32) {
	b := newBed(t, "1s", "dgx-h100")
	ensure := func() {
		if !driver.SamplerHolds(string(b.dir)) {
			b.sampler()
		}
	}
	last := b.begin(1, 0)
	ensure()
	for job := uint32(2); job <= jobs; job++ {
		b.samples(last)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := b.dir.MarkEnd(last, runs.Mark{BootID: b.boot}); err != nil {
				t.Error(err)
			}
			for range 2000 {
				if s, err := b.dir.ReadSums(last, b.boot); err == nil && s.Final {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if err := b.dir.MarkDone(last, runs.Mark{BootID: b.boot}); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Duration(job%20) * time.Millisecond)
		next := b.begin(job, int(job)%8)
		ensure()
		<-ended
		last = next
	}
	b.samples(last)
	b.end(last)
}

func TestLeavingCgroups(t *testing.T) {
	const mounts = `cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,nosuid,memory 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0
`
	for _, c := range []struct{ mine, want string }{
		{"4:memory:/slurm/uid_0/job_7\n3:cpu,cpuacct:/\n1:name=systemd:/system.slice/slurmd.service\n0::/system.slice/slurmd.service\n",
			"/sys/fs/cgroup/memory /sys/fs/cgroup/systemd /sys/fs/cgroup/unified"},
		{"0::/system.slice/gpuhooks-sampler.service\n", ""},
		{"0::/\n", ""},
	} {
		if got := strings.Join(slurmHierarchies(c.mine, mounts), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.mine, got, c.want)
		}
	}
}
