package host

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
)

// waiting judges a thread in state D: it is listed if it waits in the NVIDIA
// driver. The kernel's own names for its threads tell that; for all others it
// is the stack, which only root may read, or the one function of wchan, which
// many kernels hide.
func (s *scan) waiting(pid, tid int, comm string) {
	if len(s.stuck) >= maxStuck {
		return
	}
	task := "proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid)
	where, known := s.place(task)
	if driversThread(comm) && where == "" {
		where = "the driver's own thread"
	}
	if where == "" {
		if !known {
			s.fault(gpu.Fault{Call: "/" + task + "/stack", Kind: gpu.FaultPermission,
				Text: "a thread is in state D, and where in the kernel cannot be seen"})
		}
		return
	}
	p, err := s.fs.Process(pid)
	if err != nil {
		s.failed(err)
		return
	}
	s.stuck = append(s.stuck, gpu.Stuck{PID: pid, TID: tid, Name: printable(comm), Where: where, Start: gpu.Some(p.Start), Job: p.Job,
		Switches: s.switches(pid, tid)})
}

// moment is how long a thread must wait to be listed: in the midst of work
// threads are in state D for milliseconds.
const moment = 300 * time.Millisecond

// settle looks again at the threads that were found, after a moment, and leaves
// those that are in the same wait still.
func (s *scan) settle(until time.Time) {
	if len(s.stuck) == 0 {
		return
	}
	time.Sleep(min(moment, max(0, time.Until(until))))
	s.stuck = slices.DeleteFunc(s.stuck, func(k gpu.Stuck) bool {
		t, ok := parseThread(s.read(k.PID, k.TID, "stat"))
		return !ok || t.state != 'D' || s.switches(k.PID, k.TID) != k.Switches
	})
}

func (s *scan) switches(pid, tid int) gpu.Opt[uint64] {
	return parseSwitches(string(s.read(pid, tid, "status")))
}

// place is the driver's function in which a thread waits; "" when it waits
// elsewhere. known is false when nobody would say where it waits.
func (s *scan) place(task string) (where string, known bool) {
	b, err := s.fs.read(largeFile, task, "stack")
	if err == nil {
		return driverFrame(string(b)), true
	}
	// It names the function that has called the kernel's waiting.
	w, err := s.fs.value(task, "wchan")
	switch {
	case errors.Is(gone(err), fs.ErrNotExist):
		return "", true
	case err != nil || w == "" || w == "0":
		return "", false
	case driversFunction(w):
		return printable(w), true
	}
	return "", true
}

// driverFrame finds the innermost function of an NVIDIA module in a stack:
//
//	[<0>] os_acquire_mutex+0x35/0x60 [nvidia]
func driverFrame(stack string) string {
	for line := range strings.Lines(stack) {
		open, end := strings.LastIndexByte(line, '['), strings.LastIndexByte(line, ']')
		if open < 1 || end < open || !driversModule(line[open+1:end]) {
			continue
		}
		function := strings.TrimSpace(line[:open])
		if i := strings.LastIndexByte(function, ' '); i >= 0 {
			function = function[i+1:]
		}
		function, _, _ = strings.Cut(function, "+")
		return printable(function + " [" + line[open+1:end] + "]")
	}
	return ""
}

// driversModule knows the driver's kernel modules.
func driversModule(name string) bool {
	switch name {
	case "nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem", "nv_peer_mem", "nvidia_fs":
		return true
	}
	return false
}

// driversFunction knows the driver's functions by how their names begin: wchan
// names no module.
func driversFunction(name string) bool {
	for _, prefix := range []string{"nvidia_", "nvidia.", "nv_", "_nv", "nvkms_", "uvm_", "rm_", "os_acquire_", "os_wait_", "os_delay"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// driversThread knows the driver's kernel threads by name. Idle ones are in
// state S or I, so that one in state D does wait for the hardware or a lock.
func driversThread(comm string) bool {
	switch {
	case comm == "nv_queue", comm == "nv_open_q":
		return true
	case strings.HasPrefix(comm, "nvidia-modeset/"), strings.HasPrefix(comm, "nvidia-drm/"), strings.HasPrefix(comm, "UVM "):
		return true
	}
	return strings.HasPrefix(comm, "irq/") && strings.HasSuffix(comm, "-nvidia")
}

// parseSwitches adds the voluntary and the other context switches of
// /proc/PID/task/TID/status.
func parseSwitches(status string) gpu.Opt[uint64] {
	var sum uint64
	found := 0
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if name != "voluntary_ctxt_switches" && name != "nonvoluntary_ctxt_switches" {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
			sum += n
			found++
		}
	}
	if found != 2 {
		return gpu.Opt[uint64]{}
	}
	return gpu.Some(sum)
}
