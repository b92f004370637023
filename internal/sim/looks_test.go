//go:build cgo

package sim_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpmResult is a pair of samples some time apart.
type gpmResult struct {
	Support bool
	Values  map[int]string // by metric id; NaN cannot travel as a JSON number
	Returns map[int]int
	Get     int
	Seconds float64 // between the calls; the samples are of the refreshes before them
}

func waitForFile(path string) {
	for range 2000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (r gpmResult) value(id int) float64 {
	v, err := strconv.ParseFloat(r.Values[id], 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// gpm GPU GAP ID...: a pair of samples so far apart. GPU may be GPU/MIGINDEX;
// a GAP that is a path lasts from the first sample, when PATH.ready is made, until PATH exists.
func gpm(lib nvml.Interface, args []string) any {
	var g, m int
	n, _ := fmt.Sscanf(args[0], "%d/%d", &g, &m)
	d := device(lib, strconv.Itoa(g))
	if n == 2 {
		d, _ = d.GetMigDeviceHandleByIndex(m)
	}
	support, _ := lib.GpmQueryDeviceSupport(d)
	a, _ := lib.GpmSampleAlloc()
	b, _ := lib.GpmSampleAlloc()
	a.Get(d)
	from := time.Now()
	if gap, err := time.ParseDuration(args[1]); err == nil {
		time.Sleep(gap)
	} else {
		os.WriteFile(args[1]+".ready", nil, 0o600)
		waitForFile(args[1])
	}
	seconds := time.Since(from).Seconds()
	b.Get(d)
	get := nvml.GpmMetricsGetType{Version: 1, NumMetrics: uint32(len(args) - 2), Sample1: a, Sample2: b}
	for i, id := range args[2:] {
		n, _ := strconv.Atoi(id)
		get.Metrics[i].MetricId = uint32(n)
	}
	r := gpmResult{support.IsSupportedDevice != 0, map[int]string{}, map[int]int{}, int(lib.GpmMetricsGet(&get)), seconds}
	for i := range len(args) - 2 {
		r.Values[int(get.Metrics[i].MetricId)] = strconv.FormatFloat(get.Metrics[i].Value, 'g', -1, 64)
		r.Returns[int(get.Metrics[i].MetricId)] = int(get.Metrics[i].NvmlReturn)
	}
	return r
}

type callResult struct {
	Return  int
	Text    string
	Seconds float64
}

// call GPU: how the name of a GPU is answered.
func oneCall(lib nvml.Interface, args []string) any {
	d := device(lib, args[0])
	from := time.Now()
	name, ret := d.GetName()
	return callResult{int(ret), name, time.Since(from).Seconds()}
}

func processes(lib nvml.Interface, args []string) any {
	list, ret := device(lib, args[0]).GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		return []int{-int(ret)}
	}
	pids := []int{}
	for _, p := range list {
		pids = append(pids, int(p.Pid))
	}
	return pids
}

type eventResult struct {
	Return int
	Xid    uint64
	UUID   string
	Waited float64
}

func waitForEvent(lib nvml.Interface, args []string) any {
	set, _ := lib.EventSetCreate()
	defer set.Free()
	for i := range 8 {
		device(lib, strconv.Itoa(i)).RegisterEvents(nvml.EventTypeXidCriticalError, set)
	}
	os.WriteFile(args[0], nil, 0o600) // ready
	from := time.Now()
	e, ret := set.Wait(5000)
	r := eventResult{Return: int(ret), Xid: e.EventData, Waited: time.Since(from).Seconds()}
	if ret == nvml.SUCCESS {
		r.UUID, _ = e.Device.GetUUID()
	}
	return r
}

type fieldResult struct {
	Return int
	Value  uint64
}

// fields GPU ID[@SCOPE]...: the values of fields, in one call.
func fields(lib nvml.Interface, args []string) any {
	list := make([]nvml.FieldValue, len(args)-1)
	for i, a := range args[1:] {
		fmt.Sscanf(a, "%d@%d", &list[i].FieldId, &list[i].ScopeId)
	}
	device(lib, args[0]).GetFieldValues(list)
	r := make([]fieldResult, len(list))
	for i, f := range list {
		r[i] = fieldResult{int(f.NvmlReturn), *(*uint64)(ptr(&f.Value))}
	}
	return r
}

// versions: what versioned structs answer, in the versions that exist.
func versions(lib nvml.Interface, _ []string) any {
	d := device(lib, "0")
	_, sram := d.GetSramEccErrorStatus()
	_, margin := d.GetMarginTemperature()
	fabric, v3 := d.GetGpuFabricInfoV().V3()
	_, v2 := d.GetGpuFabricInfoV().V2()
	return []int{int(sram), int(margin), int(v3), int(v2), int(fabric.HealthSummary)}
}

type migDevice struct {
	Index, GI, CI int
	Name, UUID    string
	Memory        uint64
	SMs           uint32
	Util          int
	Parent        string
}

func mig(lib nvml.Interface, args []string) any {
	d := device(lib, args[0])
	max, _ := d.GetMaxMigDeviceCount()
	list := []migDevice{}
	for i := range max {
		m, ret := d.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue
		}
		r := migDevice{Index: i}
		r.GI, _ = m.GetGpuInstanceId()
		r.CI, _ = m.GetComputeInstanceId()
		r.Name, _ = m.GetName()
		r.UUID, _ = m.GetUUID()
		memory, _ := m.GetMemoryInfo()
		r.Memory = memory.Total
		a, _ := m.GetAttributes()
		r.SMs = a.MultiprocessorCount
		_, ret = m.GetUtilizationRates()
		r.Util = int(ret)
		parent, _ := m.GetDeviceHandleFromMigDeviceHandle()
		r.Parent, _ = parent.GetUUID()
		list = append(list, r)
	}
	return list
}

// slow: one call on each of eight GPUs at once; how long all take together.
func slow(lib nvml.Interface, _ []string) any {
	var devices []nvml.Device
	for i := range 8 {
		devices = append(devices, device(lib, strconv.Itoa(i)))
	}
	from := time.Now()
	done := make(chan bool)
	for _, d := range devices {
		go func() {
			d.GetName()
			done <- true
		}()
	}
	for range devices {
		<-done
	}
	return time.Since(from).Seconds()
}

// samples: the means of the utilisation ring, newest last, in percent.
func samples(lib nvml.Interface, args []string) any {
	_, list, ret := device(lib, args[0]).GetSamples(nvml.GPU_UTILIZATION_SAMPLES, 0)
	if ret != nvml.SUCCESS {
		return []int{-int(ret)}
	}
	values := []int{}
	for _, s := range list {
		values = append(values, int(s.SampleValue[0]))
	}
	return values
}

// instances GPU: per profile how many could still be made and which there are, as "id:remaining:gi@start+size".
func instances(lib nvml.Interface, args []string) any {
	d := device(lib, args[0])
	list := []string{}
	for i := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		info, ret := d.GetGpuInstanceProfileInfo(i)
		if ret != nvml.SUCCESS {
			continue
		}
		left, _ := d.GetGpuInstanceRemainingCapacity(&info)
		line := fmt.Sprintf("%d:%d", info.Id, left)
		have, _ := d.GetGpuInstances(&info)
		for _, g := range have {
			gi, _ := g.GetInfo()
			line += fmt.Sprintf(":%d@%d+%d", gi.Id, gi.Placement.Start, gi.Placement.Size)
		}
		list = append(list, line)
	}
	return list
}

// margin asks for a function that drivers before 550 do not have.
func margin(lib nvml.Interface, args []string) any {
	_, ret := device(lib, args[0]).GetMarginTemperature()
	return int(ret)
}
