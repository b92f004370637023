//go:build cgo

package sim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/sim"
)

// A process can load one libnvidia-ml only, and must be able to die of it: the
// test binary starts itself as a client, with the real go-nvml, for each look.

type client func(lib nvml.Interface, args []string) any

var clients = map[string]client{
	"inventory": inventory,
	"sums":      sums,
	"gpm":       gpm,
	"call":      oneCall,
	"processes": processes,
	"event":     waitForEvent,
	"fields":    fields,
	"versions":  versions,
	"mig":       mig,
	"slow":      slow,
	"samples":   samples,
	"instances": instances,
	"margin":    margin,
}

func TestMain(m *testing.M) {
	name := os.Getenv("SIM_CLIENT")
	if name == "" {
		os.Exit(m.Run())
	}
	lib := nvml.New(nvml.WithLibraryPath(os.Getenv("SIM_LIBRARY")))
	if ret := lib.Init(); ret != nvml.SUCCESS {
		json.NewEncoder(os.Stdout).Encode(map[string]int{"init": int(ret)})
		os.Exit(3)
	}
	json.NewEncoder(os.Stdout).Encode(clients[name](lib, os.Args[1:]))
	os.Exit(0)
}

func start(t *testing.T, n *sim.Node, name string, args ...string) (cmd *exec.Cmd, result func(out any)) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = []string{"SIM_CLIENT=" + name, "SIM_LIBRARY=" + n.Library()} // no other: the library finds its node by itself
	type answer struct {
		out []byte
		err error
	}
	done := make(chan answer, 1)
	go func() {
		out, err := cmd.Output()
		done <- answer{out, err}
	}()
	return cmd, func(out any) {
		t.Helper()
		a := <-done
		var exit *exec.ExitError
		if a.err != nil && !(errors.As(a.err, &exit) && exit.ExitCode() == 3) {
			t.Fatalf("client %s: %v\n%s", name, a.err, a.out)
		}
		if err := json.Unmarshal(a.out, out); err != nil {
			t.Fatalf("client %s: %v\n%s", name, err, a.out)
		}
	}
}

func look(t *testing.T, n *sim.Node, out any, name string, args ...string) {
	t.Helper()
	_, result := start(t, n, name, args...)
	result(out)
}

func device(lib nvml.Interface, arg string) nvml.Device {
	i, _ := strconv.Atoi(arg)
	d, ret := lib.DeviceGetHandleByIndex(i)
	if ret != nvml.SUCCESS {
		panic(ret)
	}
	return d
}

type card struct {
	Name, UUID, Serial, PCI string
	Minor, Index            int
	Memory                  uint64
	Returns                 []int // of the handle, name, serial, energy
	GPM, ECC, MIG           bool
	Links                   int
	Persistence             bool
	Power, Limit, Gen       int
}

type node struct {
	Init         int
	Driver       string
	CUDA         int
	Count        int
	Cards        []card
	HandleReturn []int
}

func inventory(lib nvml.Interface, _ []string) any {
	var n node
	n.Driver, _ = lib.SystemGetDriverVersion()
	n.CUDA, _ = lib.SystemGetCudaDriverVersion()
	n.Count, _ = lib.DeviceGetCount()
	for i := range n.Count {
		d, ret := lib.DeviceGetHandleByIndex(i)
		n.HandleReturn = append(n.HandleReturn, int(ret))
		if ret != nvml.SUCCESS {
			continue
		}
		var c card
		c.Name, _ = d.GetName()
		c.UUID, _ = d.GetUUID()
		c.Serial, _ = d.GetSerial()
		c.Minor, _ = d.GetMinorNumber()
		c.Index, _ = d.GetIndex()
		memory, _ := d.GetMemoryInfo_v2()
		c.Memory = memory.Total
		pci, _ := d.GetPciInfo()
		for _, b := range pci.BusId {
			if b != 0 {
				c.PCI += string(rune(b))
			}
		}
		gpm, _ := lib.GpmQueryDeviceSupport(d)
		c.GPM = gpm.IsSupportedDevice != 0
		ecc, _, ret := d.GetEccMode()
		c.ECC = ret == nvml.SUCCESS && ecc == nvml.FEATURE_ENABLED
		mode, _, _ := d.GetMigMode()
		c.MIG = mode == 1
		for l := range 18 {
			if s, ret := d.GetNvLinkState(l); ret == nvml.SUCCESS && s == nvml.FEATURE_ENABLED {
				c.Links++
			}
		}
		p, _ := d.GetPersistenceMode()
		c.Persistence = p == nvml.FEATURE_ENABLED
		power, _ := d.GetPowerUsage()
		limit, _ := d.GetEnforcedPowerLimit()
		c.Power, c.Limit = int(power), int(limit)
		gen, _ := d.GetCurrPcieLinkGeneration()
		c.Gen = gen
		n.Cards = append(n.Cards, c)
	}
	return n
}

// sum is what a GPU's counters say, and when (monotonic, in seconds).
type sum struct {
	Energy        float64 // J
	Power         float64 // W
	Util          int
	ThrottleNanos uint64
	At            float64
	Used          uint64
}

func sums(lib nvml.Interface, args []string) any {
	d := device(lib, args[0])
	e, at := uint64(0), 0.0
	for range 50 { // a busy machine may come between the clock and the counter
		from := monotonicSeconds()
		e, _ = d.GetTotalEnergyConsumption()
		if at = monotonicSeconds(); at-from < 100e-6 {
			break
		}
	}
	p, _ := d.GetPowerUsage()
	u, _ := d.GetUtilizationRates()
	f := []nvml.FieldValue{{FieldId: nvml.FI_DEV_PERF_POLICY_POWER}}
	d.GetFieldValues(f)
	m, _ := d.GetMemoryInfo_v2()
	return sum{float64(e) / 1000, float64(p) / 1000, int(u.Gpu), *(*uint64)(ptr(&f[0].Value)), at, m.Used}
}

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
