//go:build cgo

package nvml

import (
	"encoding/binary"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/gpu"
)

func field(kind nvml.ValueType, v uint64) nvml.FieldValue {
	f := nvml.FieldValue{ValueType: uint32(kind)}
	binary.NativeEndian.PutUint64(f.Value[:], v)
	return f
}

func TestDecodeKnowsBlanks(t *testing.T) {
	failed := field(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 7)
	failed.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
	for _, c := range []struct {
		name string
		in   nvml.FieldValue
		want uint64
		ok   bool
	}{
		{"plain", field(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 7), 7, true},
		{"not supported", failed, 0, false},
		{"all ones", field(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, math.MaxUint64), 0, false},
		{"DCGM's blank", field(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 0x7ffffffffffffff0), 0, false},
		{"32 bits of ones", field(nvml.VALUE_TYPE_UNSIGNED_INT, math.MaxUint32), 0, false},
		{"what stands above 32 bits is not read", field(nvml.VALUE_TYPE_UNSIGNED_INT, 1<<40|9), 9, true},
		{"negative", field(nvml.VALUE_TYPE_SIGNED_INT, uint64(math.MaxUint32)), 0, false},
		{"short", field(nvml.VALUE_TYPE_UNSIGNED_SHORT, 1<<20|3), 3, true},
		{"double", field(nvml.VALUE_TYPE_DOUBLE, math.Float64bits(2.5)), 2, true},
		{"NaN", field(nvml.VALUE_TYPE_DOUBLE, math.Float64bits(math.NaN())), 0, false},
	} {
		if got, ok := decode(c.in); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %d, %v", c.name, got, ok)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		in, want float64
		ok       bool
	}{
		{0, 0, true}, {82, 0.82, true}, {103, 1, true}, {129, 0, false}, {-1, 0, false},
		{math.NaN(), 0, false}, {math.Inf(1), 0, false}, {140737488355328, 0, false},
	} {
		if got, ok := percent(c.in); ok != c.ok || got != c.want {
			t.Errorf("percent(%v) = %v, %v", c.in, got, ok)
		}
	}
}

func TestFaultKinds(t *testing.T) {
	kinds := map[nvml.Return]gpu.FaultKind{
		nvml.ERROR_GPU_IS_LOST: gpu.FaultLost, nvml.ERROR_RESET_REQUIRED: gpu.FaultResetRequired,
		nvml.ERROR_DRIVER_NOT_LOADED: gpu.FaultNoDriver, nvml.ERROR_LIB_RM_VERSION_MISMATCH: gpu.FaultMismatch,
		nvml.ERROR_LIBRARY_NOT_FOUND: gpu.FaultNoLibrary, nvml.ERROR_NO_PERMISSION: gpu.FaultPermission,
		nvml.ERROR_UNKNOWN: gpu.FaultOther, nvml.ERROR_TIMEOUT: gpu.FaultTimeout,
	}
	for ret, want := range kinds {
		if got := newFault("f", ret); got.Kind != want || got.Code != int(ret) {
			t.Errorf("code %d: %+v", ret, got)
		}
	}
}

func TestUnsupportedIsNoFault(t *testing.T) {
	var a answers
	for _, ret := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_DATA, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_NOT_FOUND} {
		if a.ok("f", ret) || len(a.faults) != 0 {
			t.Errorf("code %d: %v", ret, a.faults)
		}
	}
	for range 3 {
		a.ok("f", nvml.ERROR_UNKNOWN)
	}
	if len(a.faults) != 1 {
		t.Errorf("the same fault is there %d times", len(a.faults))
	}
}

func TestCountersFromFields(t *testing.T) {
	f := fieldValues{
		{nvml.FI_DEV_ECC_DBE_VOL_TOTAL, 0}: 10, {nvml.FI_DEV_ECC_DBE_VOL_DEV, 0}: 7,
		{nvml.FI_DEV_ECC_SBE_VOL_TOTAL, 0}:                5, // without its part in DRAM the rest is not known
		{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, allLinks}: 3,
		{nvml.FI_DEV_NVLINK_ERROR_DL_REPLAY, 0}:           1, {nvml.FI_DEV_NVLINK_ERROR_DL_REPLAY, 1}: 2,
		{nvml.FI_DEV_NVLINK_GET_STATE, 0}: 1, {nvml.FI_DEV_NVLINK_GET_STATE, 1}: 0,
	}
	c := f.counters(gpu.Identity{NVLinks: gpu.Some(2)})
	want := gpu.Counters{gpu.ECCVolUncorrDRAM: 7, gpu.ECCVolUncorrSRAM: 3, gpu.NVLinkTxBytes: 3072, gpu.NVLinkReplay: 3}
	for k, want := range want {
		if c[k] != want {
			t.Errorf("%s = %d, want %d", k, c[k], want)
		}
	}
	if len(c) != len(want) {
		t.Errorf("counters %v", c)
	}
	if n := f.activeLinks(2, &answers{}); n.Or(-1) != 1 {
		t.Errorf("links %v", n)
	}
	if n := f.activeLinks(0, &answers{}); n.IsSet() {
		t.Errorf("links of a card without: %v", n)
	}
}

func TestProcesses(t *testing.T) {
	list := appendProcesses(nil, []nvml.ProcessInfo{
		{Pid: 10, UsedGpuMemory: 1 << 30, GpuInstanceId: math.MaxUint32, ComputeInstanceId: math.MaxUint32},
		{Pid: 11, UsedGpuMemory: math.MaxUint64, GpuInstanceId: 5, ComputeInstanceId: 0},
		{Pid: 0},
	}, "compute")
	list = appendProcesses(list, []nvml.ProcessInfo{{Pid: 10, GpuInstanceId: math.MaxUint32, ComputeInstanceId: math.MaxUint32}}, "graphics")
	if len(list) != 2 || list[0].Memory.Or(0) != 1<<30 || list[0].Type != "compute" || list[1].Memory.IsSet() {
		t.Errorf("%+v", list)
	}
	if in := of(list, 5, 0); len(in) != 1 || in[0].PID != 11 {
		t.Errorf("of the instance: %+v", in)
	}
}

func TestNames(t *testing.T) {
	if got := profileOf("NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb+me"); got != "1c.3g.40gb+me" {
		t.Errorf("profile %q", got)
	}
	if got := text("\x1b[31mevil\x00 "); got.Or("") != "[31mevil" {
		t.Errorf("text %q", got.Or(""))
	}
	if text("[N/A]").IsSet() {
		t.Error("[N/A] is a value")
	}
	if got := cudaVersion(13020); got != "13.2" {
		t.Errorf("CUDA %s", got)
	}
}

// The test of the guards must see an unguarded call.
func TestGuardTestSees(t *testing.T) {
	const source = `package nvml
func bad(d nvml.Device) { d.GetMarginTemperature() }
func late(d nvml.Device, l *Library) { d.GetMarginTemperature(); l.has("nvmlDeviceGetMarginTemperature") }
func good(d nvml.Device, l *Library) { if l.has("nvmlDeviceGetMarginTemperature") { d.GetMarginTemperature() } }
func fine(d nvml.Device) { d.GetUUID() }`
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"bad": 1, "late": 1, "good": 0, "fine": 0}
	for _, d := range f.Decls {
		fn := d.(*ast.FuncDecl)
		calls := 0
		if got := unguarded(fn, symbolsOf(t), files, &calls); len(got) != want[fn.Name.Name] || calls != 1 {
			t.Errorf("%s: %v (%d calls)", fn.Name.Name, got, calls)
		}
	}
}
