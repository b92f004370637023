//go:build cgo

package sim_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

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
