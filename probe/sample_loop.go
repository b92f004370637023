//go:build cgo

package main

import (
	"fmt"
	"os"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/nvml"
	"gpuhooks/internal/runs"
)

// leave says why the sampler stops.
type leave int

const (
	leaveIdle     leave = iota // no live run is left
	leaveReleased              // somebody asked for the driver
	leaveStopped               // a signal
	leaveReload                // the driver was taken away
)

const (
	checkpointEvery = time.Minute
	heartbeatEvery  = 5 * time.Second // at the latest
	heartbeatPause  = 2 * time.Second // at the earliest, unless runs came or went
	lookEvery       = 12              // ticks: also without being woken
	maxDevices      = 1024
	endWait         = 60 * time.Millisecond // for the devices of a run that ends: its epilog waits 80
	startWait       = 2 * time.Second
)

// loopState is the sampler while it holds the lock.
type loopState struct {
	o      sampleOptions
	dir    runs.Dir
	fs     host.FS
	bootID string
	stderr *os.File

	lib     *nvml.Library // nil while the driver does not start
	fault   gpu.Fault     // why
	devices map[string]*device
	runs    map[runs.Name]*jobRun
	refused map[runs.Name]time.Time // runs that are not ours to sample, by the time of their directory
	buffers []*gpmBuffer
	kernel  *kernelFollower
	watch   *watch
	spool   *spooler
	ticks   int
	pulse   pulse
	stopped chan struct{}
	work    chan job // reads that no worker has begun
	helped  bool     // the last look needed more than one worker
	look    bool     // something may have changed among the runs
}

func newSampler(o sampleOptions, stderr *os.File) (*loopState, error) {
	s := &loopState{
		o: o, dir: runs.Dir(o.run), fs: host.NewFS(o.root), stderr: stderr,
		devices: map[string]*device{}, runs: map[runs.Name]*jobRun{}, refused: map[runs.Name]time.Time{},
		stopped: make(chan struct{}), work: make(chan job, maxDevices), look: true,
	}
	var err error
	if s.bootID, err = s.fs.BootID(); err != nil {
		return nil, err
	}
	machine := host.NewFS("/") // on a simulated node the boot id is another than bootID
	s.pulse.run = o.run
	if s.pulse.machine, err = machine.BootID(); err != nil {
		return nil, err
	}
	if me, err := machine.Process(os.Getpid()); err == nil {
		s.pulse.start = me.Start
	}
	s.watch = newWatch(s.stopped)
	s.spool = newSpooler(o.spool, s.stopped)
	go s.serve()
	for _, d := range runDirs(o.run) {
		s.watch.add(d)
	}
	return s, nil
}

// close lets go of the driver, at most for two seconds: a driver that does not
// let go is left to the end of the process.
func (s *loopState) close() {
	close(s.stopped)
	s.watch.close()
	s.kernel.close()
	s.pulse.close()
	busy := false
	for _, d := range s.devices {
		busy = busy || d.busy
	}
	if s.lib == nil || busy {
		return
	}
	closed := make(chan struct{})
	go func() {
		for _, b := range s.buffers {
			s.lib.FreeGPMSample(b.sample)
		}
		s.lib.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(1500 * time.Millisecond):
	}
}

// loop samples until there is nothing left to do.
func (s *loopState) loop(stop <-chan os.Signal) (leave, error) {
	tick := time.Now().Truncate(s.o.tick).Add(s.o.tick)
	for {
		now := time.Now()
		due := !now.Before(tick)
		if due || tick.Sub(now) > s.o.tick { // or somebody has set the clock back
			tick = now.Truncate(s.o.tick).Add(s.o.tick)
		}
		why, more, err := s.step(now, due)
		if err != nil || !more {
			return why, err
		}
		wait := time.NewTimer(time.Until(s.next(tick)))
		select {
		case <-s.watch.wake:
			s.look = true
		case <-wait.C:
		case <-stop:
			s.saveAll()
			return leaveStopped, nil
		}
		wait.Stop()
	}
}

// next is when to wake without being woken.
func (s *loopState) next(tick time.Time) time.Time {
	if beat := s.pulse.last.Add(heartbeatEvery); beat.Before(tick) {
		tick = beat
	}
	for _, r := range s.runs {
		if len(r.soon) > 0 && r.soon[0].Before(tick) {
			tick = r.soon[0]
		}
	}
	return tick
}

// step does what is due: begin new runs, read the devices, close ended runs.
// more is false when the sampler has nothing to stay for.
func (s *loopState) step(now time.Time, due bool) (why leave, more bool, err error) {
	var fresh, ended []*jobRun
	if s.look || due && s.ticks%lookEvery == 0 {
		s.look = false
		if released(s.dir) {
			s.saveAll()
			return leaveReleased, false, nil
		}
		if fresh, ended, err = s.scan(); err != nil {
			return leaveIdle, false, err
		}
	}
	if len(s.runs) == 0 && len(fresh) == 0 {
		return leaveIdle, false, nil
	}
	if s.pulse.last.IsZero() {
		s.heartbeat(now) // the driver may take its time to start
	}
	if s.lib == nil && (due || len(fresh) > 0) && s.open() {
		for _, r := range s.runs { // they have waited for the driver
			fresh = append(fresh, r)
		}
	}
	s.read(now, due, fresh, ended)
	s.follow()
	for _, f := range fresh {
		s.begin(f, now)
	}
	for _, r := range ended {
		s.finish(r)
	}
	for _, r := range s.runs {
		checkpoint := due && now.Sub(r.saved) >= checkpointEvery
		young := len(r.soon) > 0 && !now.Before(r.soon[0])
		if young {
			r.soon = r.soon[1:]
			checkpoint = checkpoint || len(r.soon) == 0 // the first one does not wait a minute
		}
		if checkpoint || young {
			s.save(r, false, checkpoint)
		}
	}
	s.drop()
	if s.reloaded() {
		s.saveAll()
		return leaveReload, false, nil
	}
	switch since := now.Sub(s.pulse.last); {
	case len(fresh)+len(ended) > 0 || s.pulse.stale(now):
		s.heartbeat(now)
	case due && since >= heartbeatPause || since >= heartbeatEvery:
		if err := s.pulse.beat(now); err != nil {
			s.heartbeat(now)
		}
	}
	return leaveIdle, len(s.runs) > 0, nil
}

// open starts the driver's library.
func (s *loopState) open() bool {
	lib, fault := nvml.Open(s.o.nvml)
	if fault != nil {
		s.fault = *fault
		return false
	}
	s.lib = lib
	return true
}

// device returns the device of that UUID, which it makes on its first use.
func (s *loopState) device(uuid string) *device {
	d := s.devices[uuid]
	if d == nil {
		d = newDevice(uuid, s.lib)
		s.devices[uuid] = d
	}
	return d
}

// follow gives the runs what came in the kernel log.
func (s *loopState) follow() {
	if s.kernel == nil {
		return
	}
	events, whole := s.kernel.more()
	for _, r := range s.runs {
		r.take(events, whole, r.seq)
	}
}

// reloaded says that every device in use lost its driver.
func (s *loopState) reloaded() bool {
	n := 0
	for _, d := range s.devices {
		if d.busy || !driverGone(d.faults) {
			return false
		}
		n++
	}
	return n > 0
}

// heartbeat tells the prologs that this sampler is alive, and of which runs.
func (s *loopState) heartbeat(now time.Time) {
	names := []string{}
	for n := range s.runs {
		names = append(names, n.String())
	}
	if err := s.pulse.write(names, now); err != nil {
		s.say("heartbeat: %v", err)
	}
}

func (s *loopState) say(format string, args ...any) {
	// Nobody may be listening any more.
	_, _ = fmt.Fprintf(s.stderr, "gpu-probe: "+format+"\n", args...)
}
