package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// card is a healthy H100 in use by nobody. Its minor is not its index.
func card(index int) gpu.GPU {
	return gpu.GPU{
		Identity: gpu.Identity{
			Index: index, Minor: gpu.Some(7 - index), UUID: fmt.Sprintf("GPU-%d", index),
			PCI: fmt.Sprintf("00000000:%d0:00.0", index+1), Name: "NVIDIA H100 80GB HBM3",
			PCIeMaxGen: gpu.Some(5), PCIeMaxWidth: gpu.Some(16), VBIOS: gpu.Some("96.00.89"), InfoROM: gpu.Some("G520"), GSP: gpu.Some("580.95.05"),
			PowerDefault: gpu.Some(700.0), MemoryMax: gpu.Some(95), Virtualization: gpu.Some("none"),
		},
		Complete: true,
		Health: gpu.Health{
			RecoveryAction: gpu.Some(0), MIG: gpu.Some(gpu.Switch{}), RowRemap: gpu.Some(gpu.RowRemap{}),
			PCIeGen: gpu.Some(1), PCIeWidth: gpu.Some(16), Persistence: gpu.Some(true),
			ECC: gpu.Some(gpu.Switch{Current: true, Pending: true}), RemapBanks: gpu.Some(gpu.RemapBanks{Max: 640}), SRAMThreshold: gpu.Some(false),
			Unrepairable: gpu.Some(false), Fabric: gpu.Some(gpu.FabricState{State: "completed"}), NVLinksActive: gpu.Some(18),
			ComputeMode: gpu.Some("default"), Throttle: gpu.Some(gpu.ReasonIdle), PowerLimit: gpu.Some(700.0), SMClockLimit: gpu.Some(1980),
			MemoryTotal: gpu.Some(uint64(80 << 30)),
		},
		Counters: gpu.Counters{
			gpu.ECCVolUncorrDRAM: 0, gpu.ECCAggUncorrDRAM: 2, gpu.ECCVolUncorrSRAM: 0, gpu.ECCAggUncorrSRAM: 1,
			gpu.ECCVolCorrDRAM: 40, gpu.ECCVolCorrSRAM: 3, gpu.NVLinkReplay: 100_000, gpu.NVLinkRecovery: 70, gpu.NVLinkRecoveryFailed: 1,
			gpu.ThrottleHWThermal: 500e9, gpu.ThrottleSWThermal: 0, gpu.ThrottleHWBrake: 0,
		},
		Readings: gpu.Readings{gpu.Utilization: 0, gpu.TempMargin: 50, gpu.MemTemperature: 40, gpu.MemoryUsed: 0},
	}
}

// healthy is a whole answer of a node with so many healthy cards, after a good look.
func healthy(n int) Input {
	in := Input{
		Node: gpu.Node{
			Time:     noon,
			Presence: gpu.Presence{ModuleLoaded: gpu.Some(true), ModuleVersion: gpu.Some("580.95.05"), Control: gpu.Some(true)},
			Driver:   gpu.Driver{Version: gpu.Some("580.95.05"), NVML: gpu.Some("13.580.95.05"), Count: gpu.Some(n)},
		},
		Tier: 1, Answer: gpu.AnswerWhole, Kernel: Kernel{Read: true}, Now: noon,
		Memory:    Memory{Good: map[string]gpu.Counters{}, Last: map[string]Before{}},
		Limits:    config.Default().Limits,
		Expected:  Expected{GPUs: gpu.Some(n)},
		Processes: Processes{HasCgroups: true, Allow: []string{"nvidia-persistenced"}, LiveJobs: []string{"17"}},
		Catalog: func() xid.Catalogue {
			c, err := xid.Load(nil)
			if err != nil {
				panic(err)
			}
			return c
		},
	}
	for i := range n {
		g := card(i)
		in.Node.GPUs = append(in.Node.GPUs, g)
		p := &in.Node.Presence
		p.DeviceMinors = append(p.DeviceMinors, g.Minor.Or(-1))
		p.PCI = append(p.PCI, gpu.PCIDevice{Address: g.PCI, Driver: "nvidia"})
		p.Proc = append(p.Proc, gpu.ProcGPU{Address: g.PCI, UUID: g.UUID, Minor: g.Minor})
		in.Memory.Good[g.UUID] = g.Counters
		in.Memory.Last[g.UUID] = Before{Time: noon.Add(-time.Minute), Counters: card(i).Counters}
		in.Expected.Minors = append(in.Expected.Minors, g.Minor.Or(-1))
	}
	surround(&in)
	return in
}

// drop takes a card out of NVML's answer.
func drop(in *Input, index int) {
	in.Node.GPUs = slices.DeleteFunc(in.Node.GPUs, func(g gpu.GPU) bool { return g.Index == index })
	in.Node.Driver.Count = gpu.Some(len(in.Node.GPUs))
}

// show writes a finding as "outcome [CODE] gpu: text"; gpu is the UUID, the PCI
// address of a card without one, or "node".
func show(f Finding) string {
	who := "node"
	if f.GPU != nil {
		if who = f.GPU.UUID; who == "" {
			who = f.GPU.PCI
		}
	}
	if f.Code != "" {
		who = f.Code + " " + who
	}
	return fmt.Sprintf("%s %s: %s", f.Outcome, who, f.Text)
}

// test is one row: a healthy node of two cards, one thing changed, and all
// findings that are not Pass.
type test struct {
	name   string
	change func(*Input)
	want   []string
}

func runTests(t *testing.T, c Check, tests []test) {
	t.Helper()
	runRows(t, c, append(tests, test{"healthy", func(*Input) {}, nil}))
}

// runRows is runTests for a check that a healthy node without a baseline has
// nothing for.
func runRows(t *testing.T, c Check, tests []test) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := healthy(2)
			tt.change(&in)
			var got []string
			for _, f := range c.Run(in) {
				if f.Outcome != Pass || f.Text != "" { // with a text, it is a note
					got = append(got, show(f))
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}

// on changes the card with that index.
func on(index int, change func(*gpu.GPU)) func(*Input) {
	return func(in *Input) { change(&in.Node.GPUs[index]) }
}

func TestEveryCheckIsWhole(t *testing.T) {
	name, code := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`), regexp.MustCompile(`^[A-Z]+$`)
	names, codes := map[string]bool{}, map[string]bool{}
	for _, c := range All() {
		if !name.MatchString(c.Name) || names[c.Name] {
			t.Errorf("%q is no name for a check, or is used twice", c.Name)
		}
		// "[HC] " and " gpu=7" stand in 20 characters with it.
		if !code.MatchString(c.Code) || codes[c.Code] || len(c.Code) > 10 {
			t.Errorf("%s: %q is no code, or is used twice", c.Name, c.Code)
		}
		names[c.Name], codes[c.Code] = true, true
		if c.Doc.What == "" || c.Doc.Why == "" || c.Doc.Cure == "" || c.Run == nil || c.Class == "" {
			t.Errorf("%s is not complete", c.Name)
		}
		if c.Default != config.PolicyDrain && c.Default != config.PolicyWarn {
			t.Errorf("%s: a failure leads to %q", c.Name, c.Default)
		}
	}
}

// silentChecks are the checks that a healthy H100 without a baseline has nothing for.
var silentChecks = []string{"retired-pages", "repair-pending", "conf-compute", "vgpu-licence", "clocks", "versions", "virtualization", "baseline",
	"device-caps", "gpudirect", "rdma-port"}

// A healthy node passes everything, and a node of which nothing is known passes
// nothing that is about a card.
func TestKnowingNothingIsNotGood(t *testing.T) {
	for _, c := range All() {
		for _, f := range c.Run(healthy(8)) {
			if f.Outcome != Pass && (f.Outcome != Skip || !slices.Contains(silentChecks, c.Name)) {
				t.Errorf("%s: %s", c.Name, show(f))
			}
		}
		in := healthy(1)
		in.Node.GPUs[0] = gpu.GPU{Identity: in.Node.GPUs[0].Identity, Complete: false}
		in.Answer, in.Memory.Good, in.Memory.Last = gpu.AnswerPartial, nil, nil
		for _, f := range c.Run(in) {
			if f.GPU != nil && f.Outcome != Error {
				t.Errorf("%s: nothing but the name of a card arrived: %s", c.Name, show(f))
			}
		}
	}
}

func TestOutcomesAreOrdered(t *testing.T) {
	order := []Outcome{Skip, Pass, Warn, Error, Fail}
	for i := range order[1:] {
		if !order[i+1].Worse(order[i]) || order[i].Worse(order[i+1]) {
			t.Errorf("%s is not worse than %s", order[i+1], order[i])
		}
	}
	if !Outcome("?").Worse(Warn) || Outcome("?").Worse(Error) {
		t.Error("an unknown outcome is not as bad as error")
	}
}
