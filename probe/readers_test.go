//go:build cgo

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
)

// What each reader of a card's health says of a scenario: the value, and the
// faults where there was none to have.
func TestReaders(t *testing.T) {
	health := func(value func(gpu.Health) any) func(gpu.GPU) any {
		return func(g gpu.GPU) any { return value(g.Health) }
	}
	unrepairable := health(func(h gpu.Health) any { return h.Unrepairable })
	repair := health(func(h gpu.Health) any { return h.Repair })
	fabric := health(func(h gpu.Health) any { return h.Fabric })
	license := health(func(h gpu.Health) any { return h.License })
	recovery := health(func(h gpu.Health) any { return h.RecoveryAction })
	power := health(func(h gpu.Health) any { return h.PowerLimit })
	clock := health(func(h gpu.Health) any { return h.SMClockLimit })
	pstate := health(func(h gpu.Health) any { return h.PState })
	links := health(func(h gpu.Health) any { return h.NVLinksActive })
	sram := health(func(h gpu.Health) any { return h.SRAMThreshold })
	banks := health(func(h gpu.Health) any { return h.RemapBanks })
	remap := health(func(h gpu.Health) any { return h.RowRemap })
	const unset = "unset"
	good := `{"state":"completed","status":0,"clique":0,"summary":"healthy"}`
	cases := []readerCase{
		{"dgx-h100", "gpu.0.unrepairable=false", unrepairable, "false", ""},
		{"dgx-h100", "gpu.0.unrepairable=true", unrepairable, "true", ""},
		{"dgx-h100", "gpu.0.unrepairable=none", unrepairable, unset, ""},
		{"dgx-h100", "gpu.0.call.nvmlDeviceGetUnrepairableMemoryFlag_v1=garbage", unrepairable, unset, gpu.FaultGarbage},
		{"dgx-h100", "gpu.0.call.nvmlDeviceGetUnrepairableMemoryFlag_v1=999", unrepairable, unset, gpu.FaultOther},
		{"a100-535", "gpu.0.unrepairable=true", unrepairable, unset, ""},

		{"b200", "gpu.0.repair.tpc=false", repair, `{"channel_pending":false,"tpc_pending":false}`, ""},
		{"b200", "gpu.0.repair.tpc=true", repair, `{"channel_pending":false,"tpc_pending":true}`, ""},
		{"b200", "gpu.0.repair.channel=true", repair, `{"channel_pending":true,"tpc_pending":false}`, ""},
		{"b200", "gpu.0.repair.supported=false", repair, unset, ""},
		{"b200", "gpu.0.call.nvmlDeviceGetRepairStatus=garbage", repair, unset, gpu.FaultGarbage},
		{"dgx-h100", "gpu.0.repair.supported=true", repair, unset, ""},

		{"dgx-h100", "gpu.0.fabric.clique=0", fabric, good, ""},
		{"b200", "gpu.0.fabric.cluster=1b4e28ba-2fa1-11d2-883f-0016d3cca427", fabric,
			`{"state":"completed","status":0,"clique":0,"cluster":"1b4e28ba-2fa1-11d2-883f-0016d3cca427","summary":"healthy"}`, ""},
		{"dgx-h100", "gpu.0.fabric.state=1", fabric, strings.Replace(good, "completed", "not-started", 1), ""},
		{"dgx-h100", "gpu.0.fabric.state=2", fabric, strings.Replace(good, "completed", "in-progress", 1), ""},
		{"dgx-h100", "gpu.0.fabric.status=999", fabric, strings.Replace(good, `"status":0`, `"status":999`, 1), ""},
		{"dgx-h100", "gpu.0.fabric.health=0x51a9", fabric, strings.Replace(good, `,"summary`, `,"health":["degraded-bandwidth"],"summary`, 1), ""},
		{"dgx-h100", "gpu.0.fabric.health=0x5155", fabric,
			strings.Replace(good, `,"summary`, `,"health":["degraded-bandwidth","route-recovery","route-unhealthy","access-timeout"],"summary`, 1), ""},
		{"dgx-h100", "gpu.0.fabric.health=0x55aa", fabric, strings.Replace(good, `,"summary`, `,"health":["wrong-configuration"],"summary`, 1), ""},
		{"dgx-h100", "gpu.0.fabric.summary=3", fabric, strings.Replace(good, "healthy", "limited", 1), ""},
		{"dgx-h100", "gpu.0.fabric.summary=2", fabric, strings.Replace(good, "healthy", "unhealthy", 1), ""},
		{"dgx-h100", "gpu.0.fabric.summary=0", fabric, strings.Replace(good, `,"summary":"healthy"`, "", 1), ""},
		{"dgx-h100", "gpu.0.fabric.state=0", fabric, unset, ""},
		{"dgx-h100", "gpu.0.fabric.state=none", fabric, unset, ""},
		{"dgx-h100", "gpu.0.nvlinks=0", fabric, unset, ""},
		{"dgx-h100", "gpu.0.mig.mode=true", fabric, unset, ""},
		{"dgx-h100", "gpu.0.call.nvmlDeviceGetGpuFabricInfoV=garbage", fabric, unset, gpu.FaultGarbage},
		{"dgx-h100", "gpu.0.call.nvmlDeviceGetGpuFabricInfoV=TIMEOUT", fabric, unset, gpu.FaultTimeout},

		{"vgpu-guest", "gpu.0.license=true", license, "true", ""},
		{"vgpu-guest", "gpu.0.license=false", license, "false", ""},
		{"vgpu-guest", "gpu.0.license=none", license, unset, ""},
		{"vgpu-guest", "gpu.0.call.nvmlDeviceGetGridLicensableFeatures_v4=garbage", license, unset, gpu.FaultGarbage},
		{"dgx-h100", "gpu.0.license=false", license, unset, ""},

		{"dgx-h100", "gpu.0.recovery=4", recovery, "4", ""},
		{"dgx-h100", "gpu.0.recovery=17", recovery, "17", ""},
		{"dgx-h100", "gpu.0.recovery=none", recovery, unset, ""},
		{"dgx-h100", "gpu.0.field.230=garbage", recovery, unset, gpu.FaultGarbage},
		{"dgx-h100", "gpu.0.field.230=UNKNOWN", recovery, unset, ""},
		{"dgx-h100", "gpu.0.field.230=GPU_IS_LOST", recovery, unset, gpu.FaultLost},
		{"dgx-h100", "gpu.0.field.145=RESET_REQUIRED", remap, unset, gpu.FaultResetRequired},
		{"dgx-h100", "gpu.0.field.144=garbage", remap, unset, gpu.FaultGarbage},

		{"dgx-h100", "gpu.0.power.limit=450", power, "450", ""},
		{"dgx-h100", "gpu.0.field.190=NOT_SUPPORTED", power, "700", ""}, // from the call
		{"dgx-h100", "gpu.0.field.190=garbage", power, "700", gpu.FaultGarbage},
		{"rtx4000-ada", "gpu.0.power.supported=false", power, unset, ""},

		{"dgx-h100", "gpu.0.clock.app=1410", clock, "1410", ""},
		{"dgx-h100", "gpu.0.clock.app=none", clock, unset, ""},
		{"dgx-h100", "gpu.0.call.nvmlDeviceGetApplicationsClock=garbage", clock, unset, gpu.FaultGarbage},
		{"l40s-idle", "gpu.0.pstate.idle=8", pstate, "8", ""},
		{"l40s-idle", "gpu.0.pstate.idle=32", pstate, unset, ""}, // NVML_PSTATE_UNKNOWN
		{"l40s-idle", "gpu.0.call.nvmlDeviceGetPerformanceState=garbage", pstate, unset, gpu.FaultGarbage},

		{"dgx-h100", "gpu.0.nvlink.3.active=false", links, "17", ""},
		{"v100-470", "gpu.0.nvlink.3.active=false", links, "5", ""},
		{"mixed", "gpu.0.nvlink.0.active=false", links, "0", ""},
		{"dgx-h100", "gpu.0.field.165=garbage", links, unset, gpu.FaultGarbage},
		{"dgx-h100", "gpu.0.field.165=NOT_SUPPORTED", links, unset, ""},
		{"v100-470", "gpu.0.call.nvmlDeviceGetNvLinkState=999", links, unset, gpu.FaultOther},

		{"dgx-h100", "gpu.0.ecc.sram_threshold=true", sram, "true", ""},
		{"dgx-h100", "gpu.0.ecc=false", sram, unset, ""},
		{"dgx-h100", "gpu.0.call.nvmlDeviceGetSramEccErrorStatus=garbage", sram, unset, gpu.FaultGarbage},
		{"dgx-h100", "gpu.0.remap.histogram.low=2", banks, `{"max":640,"high":0,"partial":0,"low":2,"none":0}`, ""},
		{"v100-470", "gpu.0.retired.dbe=3", banks, unset, ""},
	}
	// A node's cards take a case each.
	for len(cases) > 0 {
		profile := cases[0].profile
		var mine, others []readerCase
		var set []string
		for _, c := range cases {
			if c.profile == profile && len(mine) < cardsOf[profile] {
				set = append(set, strings.Replace(c.set, "gpu.0.", fmt.Sprintf("gpu.%d.", len(mine)), 1))
				mine = append(mine, c)
			} else {
				others = append(others, c)
			}
		}
		cases = others
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			for i, g := range readOnce(t, newNode(t, profile, set...)).gpus {
				if i < len(mine) {
					mine[i].judge(t, g)
				}
			}
		})
	}
}

// readerCase is one card of a scenario and what a reader must say of it.
type readerCase struct {
	profile, set string // for GPU 0; it is set for another, too
	value        func(gpu.GPU) any
	want         string // as JSON has it
	fault        gpu.FaultKind
}

var cardsOf = map[string]int{"dgx-h100": 8, "b200": 8, "a100-535": 8, "v100-470": 4, "l40s-idle": 4, "mixed": 2, "rtx4000-ada": 2, "vgpu-guest": 1}

func (c readerCase) judge(t *testing.T, g gpu.GPU) {
	t.Helper()
	if got := asText(t, c.value(g)); got != c.want {
		t.Errorf("%s: %s, want %s", c.set, got, c.want)
	}
	if c.fault == "" && len(g.Faults) > 0 || c.fault != "" && !gpu.HasFault(g.Faults, c.fault) {
		t.Errorf("%s: faults %v, want %q", c.set, g.Faults, c.fault)
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) == "null" {
		return "unset"
	}
	return string(b)
}

// The identity of a card: what a baseline compares, and where it sits.
func TestReadIdentity(t *testing.T) {
	for _, c := range []struct {
		profile, set, want string
	}{
		{"hgx-h200", "gpu.7.numa=1", "vbios 96.00.BC.00.02 inforom G520.0280.00.04 gsp 570.172.08 power 700 virtualization none numa 1 cpus 48-95,144-191 slowdown 87 memory 95"},
		{"dgx-h100", "gpu.7.cpus=0,2-3,130", "vbios 96.00.74.00.01 inforom G520.0200.00.05 gsp 580.95.05 power 700 virtualization none numa 1 cpus 0,2-3,130 slowdown 87 memory 95"},
		{"dgx-h100", "gpu.7.virtualization=1", "vbios 96.00.74.00.01 inforom G520.0200.00.05 gsp 580.95.05 power 700 virtualization passthrough numa 1 cpus 1 slowdown 87 memory 95"},
		{"v100-470", "gpu.3.numa=0", "vbios 88.00.80.00.01 inforom G503.0203.00.05 gsp - power 300 virtualization none numa 0 cpus 20-39,60-79 slowdown 87 memory 85"},
		{"vgpu-guest", "gpu.0.numa=-1", "vbios - inforom - gsp - power - virtualization vgpu numa - cpus 0 slowdown - memory -"},
		{"dgx-h100", "call.nvmlDeviceGetCpuAffinity=UNKNOWN", "vbios 96.00.74.00.01 inforom G520.0200.00.05 gsp 580.95.05 power 700 virtualization none numa 1 cpus - slowdown 87 memory 95"},
	} {
		t.Run(c.profile+" "+c.set, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, c.profile, c.set)
			for range 2 { // read, then from the cache
				a := readOnce(t, n)
				g := a.gpus[len(a.gpus)-1]
				got := fmt.Sprintf("vbios %s inforom %s gsp %s power %s virtualization %s numa %s cpus %s slowdown %s memory %s",
					show(g.VBIOS), show(g.InfoROM), show(g.GSP), show(g.PowerDefault), show(g.Virtualization), show(g.NUMA), show(g.CPUs), show(g.Slowdown), show(g.MemoryMax))
				if got != c.want || len(g.Faults) != 0 {
					t.Errorf("%s\nwant %s\nfaults %v", got, c.want, g.Faults)
				}
			}
		})
	}
}

func show[T any](o gpu.Opt[T]) string {
	if v, ok := o.Get(); ok {
		return fmt.Sprint(v)
	}
	return "-"
}

func TestReadConfCompute(t *testing.T) {
	for _, c := range []struct {
		set, want string
		faults    int
	}{
		{"cc.enabled=false", `{"enabled":false,"ready":false,"devtools":false}`, 0},
		{"cc.enabled=true", `{"enabled":true,"ready":true,"devtools":false}`, 0},
		{"cc.enabled=true cc.ready=false", `{"enabled":true,"ready":false,"devtools":false}`, 0},
		{"cc.enabled=true cc.devtools=true", `{"enabled":true,"ready":true,"devtools":true}`, 0},
		{"call.nvmlSystemGetConfComputeState=NOT_SUPPORTED", "unset", 0},
		{"call.nvmlSystemGetConfComputeState=garbage", "unset", 1},
		{"cc.enabled=true call.nvmlSystemGetConfComputeGpusReadyState=UNKNOWN", "unset", 1},
	} {
		t.Run(c.set, func(t *testing.T) {
			t.Parallel()
			a := readOnce(t, newNode(t, "dgx-h100", strings.Fields(c.set)...))
			if got := asText(t, a.driver.ConfCompute); got != c.want || len(a.faults) != c.faults {
				t.Errorf("%s, faults %v; want %s, %d faults", got, a.faults, c.want, c.faults)
			}
		})
	}
}

// The errors of NVLink 5 are read link by link and summed; the bit error ratio
// is that of the worst link.
func TestReadNVLink5(t *testing.T) {
	t.Parallel()
	g := readOnce(t, newNode(t, "b200", "gpu.0.nvlink.2.symbol_errors=5", "gpu.0.nvlink.9.symbol_errors=7", "gpu.0.nvlink.1.recovery_events=3",
		"gpu.0.nvlink.1.recovery_failed=1", "gpu.0.nvlink.4.packet_errors=2", "gpu.0.nvlink.0.effective_ber=0x50f", "gpu.0.nvlink.17.effective_ber=0x30c")).gpus[0]
	for k, want := range map[gpu.Counter]uint64{gpu.NVLinkSymbol: 12, gpu.NVLinkRecovery: 3, gpu.NVLinkRecoveryFailed: 1, gpu.NVLinkPacket: 2} {
		if got, ok := g.Counters.Get(k); !ok || got != want {
			t.Errorf("%s = %d, %v; want %d", k, got, ok, want)
		}
	}
	if ber := g.Health.NVLinkBER.Or(0); ber < 2.999e-12 || ber > 3.001e-12 || g.Health.NVLinksActive.Or(0) != 18 {
		t.Errorf("bit error ratio %g, links %v", ber, g.Health.NVLinksActive)
	}
	if _, ok := g.Counters[gpu.NVLinkReplay]; ok {
		t.Error("replays, which NVLink 5 does not count")
	}
}
