package record

import (
	"fmt"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/xid"
)

// The scenarios are the inputs of the golden records in testdata, which the
// tests of line, spool and report read too.

var began = time.Date(2026, 3, 4, 1, 56, 0, 0, time.UTC)

const gib = 1 << 30

// scenario is an Input under construction: n GPUs busy for some seconds.
type scenario struct{ Input }

type load struct {
	util, sm, tensor, memory float64 // ratios; memory of 80 GiB
}

func card(i int) gpu.Identity {
	return gpu.Identity{
		Index: i, Minor: gpu.Some(7 - i), Name: "NVIDIA H100 80GB HBM3",
		UUID: fmt.Sprintf("GPU-5a3f0000-0000-4000-8000-00000000000%d", i),
		PCI:  fmt.Sprintf("00000000:%02X:00.0", 0x1b+0x10*i),
	}
}

func counters(t, sm, tensor, watts float64) gpu.Counters {
	hz := 1.98e9
	c := gpu.Counters{
		gpu.EnergyMillijoules: uint64(9e9 + t*watts*1000), gpu.SMCyclesElapsed: uint64(t * hz),
		gpu.SMCyclesActive: uint64(t * hz * sm), gpu.TensorCycles: uint64(t * hz * tensor),
		gpu.TensorHMMACycles: uint64(t * hz * tensor), gpu.FP32Cycles: uint64(t * hz * 0.11),
		gpu.ThrottlePowerCap: uint64(5e9 + t*2e7), gpu.ThrottleHWThermal: 0, gpu.ThrottleSWThermal: 0, gpu.ThrottleHWBrake: 0,
		gpu.PCIeReplay: 4, gpu.PCIeTxBytes: uint64(1e12 + t*2e8), gpu.PCIeRxBytes: uint64(1e12 + t*9e8),
		gpu.NVLinkTxBytes: uint64(5e12 + t*3e9), gpu.NVLinkRxBytes: uint64(5e12 + t*3e9), gpu.NVLinkCRCFlit: 0,
		gpu.RemapCorrected: 1, gpu.RemapUncorrected: 0,
	}
	for _, k := range []gpu.Counter{gpu.ECCVolCorrDRAM, gpu.ECCVolUncorrDRAM, gpu.ECCVolCorrSRAM, gpu.ECCVolUncorrSRAM, gpu.ECCAggUncorrDRAM, gpu.ECCAggCorrSRAM, gpu.ECCAggUncorrSRAM} {
		c[k] = 0
	}
	c[gpu.ECCAggCorrDRAM] = 12
	return c
}

func stat(mean, maximum, seconds float64) runs.Stat {
	return runs.Stat{Mean: mean, Min: mean * 0.9, Max: maximum, P05: mean * 0.92, P50: mean, P95: maximum * 0.99, Seconds: seconds, Samples: int(seconds/5) + 1}
}

func sums(id string, l load, watts, seconds float64) runs.DeviceSums {
	d := runs.DeviceSums{
		UUID: id, Source: gpu.SourceGPM, Covered: seconds,
		Stats: map[gpu.Metric]runs.Stat{
			gpu.Utilization: stat(l.util, l.util, seconds), gpu.SMActive: stat(l.sm, min(l.sm*1.1, 1), seconds),
			gpu.SMOccupancy: stat(l.sm*0.6, l.sm*0.7, seconds), gpu.TensorActive: stat(l.tensor, l.tensor*1.1, seconds),
			gpu.DRAMActive: stat(l.sm*0.5, l.sm*0.6, seconds), gpu.MemoryUsed: stat(l.memory*80*gib*0.9, l.memory*80*gib, seconds),
			gpu.Power: stat(watts, watts*1.1, seconds), gpu.Temperature: stat(55, 61, seconds), gpu.SMClock: stat(1980, 1980, seconds),
		},
		Idle: gpu.Some(0.0), LongestIdle: gpu.Some(0.0), LastActive: gpu.Some(began.Add(time.Duration(seconds * 1e9))),
	}
	if l.sm < 0.01 && l.util < 0.01 {
		d.Idle, d.LongestIdle, d.LastActive = gpu.Some(seconds), gpu.Some(seconds), gpu.Opt[time.Time]{}
	}
	for i := range 4 {
		t := seconds * float64(i+1) / 4
		if d.Series == nil {
			d.Series = map[gpu.Metric][]runs.Sample{}
		}
		d.Series[gpu.SMActive] = append(d.Series[gpu.SMActive], runs.Sample{T: t, V: l.sm})
		d.Series[gpu.Power] = append(d.Series[gpu.Power], runs.Sample{T: t, V: watts})
	}
	d.Processes = []gpu.Process{{PID: 41001, Name: "python3", Memory: gpu.Some(uint64(l.memory * 80 * gib))}}
	return d
}

// ran makes a run of that many seconds with a GPU per load.
func ran(seconds float64, loads ...load) *scenario {
	j := slurm.Job{
		ID: 4711, User: "ada", UID: gpu.Some(uint32(1815)), Account: "physics", Partition: "gpu", Cluster: "lab",
		NodeName: "node01", NodeList: "node01", NumNodes: gpu.Some(1), Context: slurm.Epilog,
		ExitCode: gpu.Some(0), ExitSignal: gpu.Some(0),
	}
	end := began.Add(time.Duration(seconds * 1e9))
	s := &scenario{Input{
		Job: &runs.Job{Schema: runs.JobSchema, BootID: "b00t", DriverLoad: "580.95.05 17", Job: j, Start: runs.Point{Time: began},
			Resolution: slurm.Resolution{Verdict: slurm.Resolved, Rule: slurm.ByGresConf, Sharing: slurm.NotShared}},
		Epilog: j, BootID: "b00t", EndDriverLoad: "580.95.05 17", Now: end.Add(80 * time.Millisecond), Version: "1.0.0",
		Sums: &runs.Sums{Schema: runs.SumsSchema, BootID: "b00t", From: began, To: end, Final: true, Tick: 5},
		End:  &runs.Point{Time: end},
		Catalog: func() xid.Catalogue {
			c, err := xid.Load(nil)
			if err != nil {
				panic(err)
			}
			return c
		},
	}}
	for i, l := range loads {
		watts := 100 + 600*l.sm
		s.Job.Start.Devices = append(s.Job.Start.Devices, runs.DevicePoint{Identity: card(i), Counters: counters(1e5, l.sm, l.tensor, watts), Memory: gpu.Some(uint64(80 * gib)), MemoryUsed: gpu.Some(uint64(0))})
		s.End.Devices = append(s.End.Devices, runs.DevicePoint{Identity: card(i), Counters: counters(1e5+seconds, l.sm, l.tensor, watts), Memory: gpu.Some(uint64(80 * gib)), MemoryUsed: gpu.Some(uint64(0))})
		s.Sums.Devices = append(s.Sums.Devices, sums(card(i).UUID, l, watts, seconds))
	}
	return s
}

func (s *scenario) with(change func(*scenario)) Input {
	change(s)
	return s.Input
}

func xidEvent(code, i int, text string) xid.Event {
	return xid.Event{Kind: xid.KindXID, Code: code, PCI: card(i).PCI, PID: gpu.Some(41001), Process: "python3", Text: text,
		Seq: 900, Last: 900, First: began.Add(290 * time.Second), Until: began.Add(290 * time.Second), Count: 1}
}

func same(*scenario) {}

// scenarios are the golden inputs by name.
func scenarios() map[string]Input {
	busy := load{0.97, 0.82, 0.46, 0.55}
	none := load{}
	return map[string]Input{
		"busy":   ran(600, busy, busy).with(same),
		"unused": ran(3600, busy, busy, busy, none, none, none, none, none).with(same),
		"lowsm":  ran(1800, load{1, 0.06, 0.001, 0.08}).with(same),
		"short":  ran(3, busy).with(func(s *scenario) { s.Sums.Devices[0].Stats[gpu.SMActive] = stat(0.8, 0.8, 2.5) }),
		"ecc": ran(600, busy, busy).with(func(s *scenario) {
			s.End.Devices[1].Counters[gpu.ECCVolUncorrDRAM] = 2
			s.Sums.Events = []xid.Event{xidEvent(95, 1, "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No")}
			s.Sums.Events[0].Reset = gpu.Some(true)
			id := card(1)
			s.Findings = []check.Finding{{Check: "recovery-action", Code: "RECOVERY", Class: check.Hardware, Outcome: check.Fail, GPU: &id, Text: "the driver asks for a reset of the GPU"}}
			s.Epilog.ExitCode, s.Epilog.ExitSignal = gpu.Some(1), gpu.Some(0)
		}),
		"contained": ran(600, busy).with(func(s *scenario) {
			s.End.Devices[0].Counters[gpu.ECCVolUncorrDRAM] = 1
			s.End.Devices[0].Counters[gpu.ECCAggUncorrDRAM] = 1
			s.Sums.Events = []xid.Event{xidEvent(94, 0, "Contained: CE User Channel (0x9). RST: No, D-RST: No")}
			s.Epilog.ExitCode = gpu.Some(1)
		}),
		"noprolog":  ran(600, busy).with(func(s *scenario) { s.Job = nil }),
		"nosampler": ran(600, busy).with(func(s *scenario) { s.Sums = nil }),
		"fallen": ran(600, busy, busy).with(func(s *scenario) {
			s.End.Devices[1].Counters = nil
			s.End.Devices[1].Faults = []gpu.Fault{{Call: "nvmlDeviceGetTotalEnergyConsumption", Code: 15, Kind: gpu.FaultLost}}
			s.Sums.Events = []xid.Event{xidEvent(79, 1, "GPU has fallen off the bus.")}
			s.Epilog.ExitCode, s.Epilog.ExitSignal = gpu.Some(0), gpu.Some(9)
		}),
		"ada": ran(600, load{0.64, 0, 0, 0.1}).with(func(s *scenario) {
			for _, p := range []*runs.DevicePoint{&s.Job.Start.Devices[0], &s.End.Devices[0]} {
				p.Name = "NVIDIA RTX 4000 Ada Generation"
				for k := range p.Counters {
					if k != gpu.ThrottlePowerCap && k != gpu.PCIeReplay {
						delete(p.Counters, k)
					}
				}
			}
			d := &s.Sums.Devices[0]
			d.Source = gpu.SourceNVML
			for _, m := range []gpu.Metric{gpu.SMActive, gpu.SMOccupancy, gpu.TensorActive, gpu.DRAMActive} {
				delete(d.Stats, m)
			}
			delete(d.Series, gpu.SMActive)
		}),
		"mig": ran(600, busy).with(func(s *scenario) {
			mig := &gpu.Instance{GI: 3, CI: 0, UUID: "MIG-1f000000-0000-4000-8000-000000000003", Profile: "2g.20gb"}
			start, end := *mig, *mig
			start.Counters = gpu.Counters{gpu.SMCyclesElapsed: 1000, gpu.SMCyclesActive: 500, gpu.TensorCycles: 100}
			end.Counters = gpu.Counters{gpu.SMCyclesElapsed: 11000, gpu.SMCyclesActive: 7500, gpu.TensorCycles: 3100}
			s.Job.Start.Devices[0].Instance, s.End.Devices[0].Instance = &start, &end
			s.Job.Resolution.GPUs = []slurm.GPU{{UUID: card(0).UUID, MIG: &slurm.MIG{GI: 3, CI: 0, Profile: "2g.20gb"}}}
			d := &s.Sums.Devices[0]
			d.UUID = mig.UUID
			d.Stats[gpu.MemoryUsed] = stat(8*gib, 9*gib, 600)
			delete(d.Stats, gpu.Utilization)
			delete(d.Stats, gpu.Power)
			delete(d.Stats, gpu.Temperature)
			delete(d.Stats, gpu.SMClock)
		}),
		"nodelost": ran(600, busy).with(func(s *scenario) {
			s.NodeLost, s.End, s.EndDriverLoad = true, nil, ""
			s.Sums.Final = false
			s.Sums.To = began.Add(400 * time.Second)
			s.Sums.Devices[0].Covered = 400
		}),
		"reloaded": ran(600, busy).with(func(s *scenario) {
			s.EndDriverLoad = "580.95.05 18"
			s.End.Devices[0].Counters = counters(200, 0.82, 0.46, 592)
			s.End.Devices[0].Counters[gpu.EnergyMillijoules] = 118_400_000
			s.Sums.Devices[0].Resets, s.Sums.Devices[0].Gaps, s.Sums.Devices[0].Covered = 1, 1, 570
		}),
		"shared": ran(600, busy).with(func(s *scenario) {
			s.Job.Resolution.Shared, s.Job.Resolution.Sharing = true, slurm.SharedMPS
		}),
	}
}
