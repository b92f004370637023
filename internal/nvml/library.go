//go:build cgo

// Package nvml reads NVIDIA's management library. It is the one importer of
// go-nvml: everything leaves it as the plain data of package gpu.
//
// A driver may lack any symbol that go-nvml knows, and calling one that is
// missing ends the process at once. So every call either is in alwaysPresent
// or stands behind Library.has; a test walks this package's source for that.
//
// There is one library per process: go-nvml binds its calls to the first one
// that was opened.
package nvml

import (
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

// Library is the opened NVML. Its methods may be called from several
// goroutines, one GPU each.
type Library struct {
	api   nvml.Interface
	mu    sync.Mutex
	known map[string]bool // symbols looked up so far
}

// Open loads the library and attaches to the driver. path is a file or a name
// that the loader finds; empty is libnvidia-ml.so.1. Where a lost GPU keeps
// NVML from starting, it starts without attaching, so that the others can be
// read.
func Open(path string) (*Library, *gpu.Fault) {
	var options []nvml.LibraryOption
	if path != "" {
		options = append(options, nvml.WithLibraryPath(path))
	}
	l := &Library{api: nvml.New(options...), known: map[string]bool{}}
	ret := l.api.Init()
	if ret == nvml.SUCCESS {
		return l, nil
	}
	first := newFault("nvmlInit_v2", ret)
	if lostAtInit(ret) && l.has("nvmlInitWithFlags") &&
		l.api.InitWithFlags(nvml.INIT_FLAG_NO_ATTACH) == nvml.SUCCESS {
		return l, nil
	}
	if ret == nvml.ERROR_LIBRARY_NOT_FOUND {
		first.Text = "the NVIDIA management library could not be loaded"
	}
	return nil, &first
}

// lostAtInit says that one card keeps nvmlInit from attaching to the others.
func lostAtInit(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_UNKNOWN, nvml.ERROR_IRQ_ISSUE, nvml.ERROR_NO_PERMISSION:
		return true
	}
	return false
}

// Close detaches from the driver.
func (l *Library) Close() { l.api.Shutdown() }

// has says whether the loaded driver's library exports symbol.
func (l *Library) has(symbol string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.known[symbol]
	if !ok {
		found = l.api.Extensions().LookupSymbol(symbol) == nil
		l.known[symbol] = found
	}
	return found
}

// Driver reads what NVML says about itself and how many GPUs it has.
func (l *Library) Driver() (gpu.Driver, []gpu.Fault) {
	var d gpu.Driver
	var a answers
	if s, ret := l.api.SystemGetDriverVersion(); a.ok("nvmlSystemGetDriverVersion", ret) {
		d.Version = text(s)
	}
	if s, ret := l.api.SystemGetNVMLVersion(); a.ok("nvmlSystemGetNVMLVersion", ret) {
		d.NVML = text(s)
	}
	if v, ret := l.api.SystemGetCudaDriverVersion(); a.ok("nvmlSystemGetCudaDriverVersion", ret) && v > 0 {
		d.CUDA = gpu.Some(cudaVersion(v))
	}
	if n, ret := l.api.DeviceGetCount(); a.ok("nvmlDeviceGetCount_v2", ret) {
		if n >= 0 && n <= maxGPUs {
			d.Count = gpu.Some(n)
		} else {
			a.garbage("nvmlDeviceGetCount_v2")
		}
	}
	return d, a.faults
}

// maxGPUs bounds what a sane driver may answer.
const maxGPUs = 256
