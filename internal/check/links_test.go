package check

import (
	"testing"
	"time"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/gpu"
)

// links sets the active links of every card of a node of so many, without a
// fabric; switched leaves it.
func links(active ...int) func(*Input) {
	return more(len(active), func(in *Input) {
		for i, n := range active {
			in.Node.GPUs[i].Health.NVLinksActive = gpu.Some(n)
			in.Node.GPUs[i].Health.Fabric = gpu.Opt[gpu.FabricState]{}
		}
	})
}

func TestNVLink(t *testing.T) {
	joined := func(in *Input) {
		for i := range in.Node.GPUs {
			in.Node.GPUs[i].Health.Fabric = gpu.Some(gpu.FabricState{State: "completed"})
		}
	}
	runTests(t, nvlink, []test{
		{"one of eight without links (case E26)", links(18, 18, 0, 18, 18, 18, 18, 18), []string{"fail GPU-2: no NVLink is up; 7 GPUs of the same kind have 18"}},
		{"one link of one card down", links(18, 17, 18, 18), []string{"fail GPU-1: 17 NVLinks are up; 3 GPUs of the same kind have 18"}},
		{"two of eight: a bridge, or never had one", links(12, 12, 12, 12, 12, 12, 0, 0), []string{
			"warn GPU-6: no NVLink is up; 6 GPUs of the same kind have 12", "warn GPU-7: no NVLink is up; 6 GPUs of the same kind have 12"}},
		{"off by design everywhere (NCv5, PCIe without bridge)", links(0, 0, 0, 0), nil},
		{"two pairs, one bridged", links(12, 12, 0, 0), nil},
		{"two cards: who is wrong?", links(12, 0), nil},
		{"behind a switch, all down", all(links(0, 0), joined), []string{"fail GPU-0: no NVLink is up", "fail GPU-1: no NVLink is up"}},
		{"more than the baseline", all(links(12, 12), expect(baseline.Card{NVLinks: gpu.Some(0)})), []string{
			"warn GPU-0: not as the baseline expects: active NVLinks: 12 instead of 0", "warn GPU-1: not as the baseline expects: active NVLinks: 12 instead of 0"}},
		{"fewer than the baseline", all(links(12, 8), expect(baseline.Card{NVLinks: gpu.Some(12)})), []string{"fail GPU-1: not as the baseline expects: active NVLinks: 8 instead of 12"}},
		{"none, as the baseline says", all(links(0, 0), expect(baseline.Card{NVLinks: gpu.Some(0)})), nil},
		{"MIG mode", all(links(18, 18, 0, 18), on(2, func(g *gpu.GPU) { g.Health.MIG = gpu.Some(gpu.Switch{Current: true, Pending: true}) })),
			[]string{"skip GPU-2: a GPU in MIG mode uses no NVLink"}},
		{"no NVLink", on(1, func(g *gpu.GPU) { g.Health.NVLinksActive = gpu.Opt[int]{} }), []string{"skip GPU-1: the driver does not report NVLinks"}},
		{"siblings of another name do not count", all(links(18, 18, 18, 0), on(3, func(g *gpu.GPU) { g.Name = "NVIDIA A10" })), nil},
	})
}

func TestNVLinkErrors(t *testing.T) {
	runTests(t, nvlinkErrors, []test{
		{"many replays", grown(gpu.NVLinkReplay, 6001, time.Hour), []string{"fail GPU-1: 6001 NVLink errors in 1h0m0s (more than 100 a minute)"}},
		{"a few", grown(gpu.NVLinkReplay, 6000, time.Hour), nil},
		{"a link that did not recover", grown(gpu.NVLinkRecoveryFailed, 1, time.Hour), []string{"fail GPU-1: an NVLink did not recover and went down"}},
		{"a lifetime's total says nothing", count(gpu.NVLinkReplay, 100_000), nil},
		{"no NVLink", on(1, func(g *gpu.GPU) { g.Counters = nil }), []string{"skip GPU-1: the driver does not report NVLink errors"}},
	})
}

func TestFabricState(t *testing.T) {
	set := func(f gpu.FabricState) func(*Input) {
		return on(1, func(g *gpu.GPU) { g.Health.Fabric = gpu.Some(f) })
	}
	first := func(in *Input) { in.Memory.Last = nil }
	none := on(1, func(g *gpu.GPU) { g.Health.Fabric = gpu.Opt[gpu.FabricState]{} })
	runTests(t, fabricState, []test{
		{"completed without success (case E27)", set(gpu.FabricState{State: "completed", Status: 26}), []string{"fail GPU-1: the NVLink fabric has refused the GPU (status 26)"}},
		{"in progress at the first look", all(set(gpu.FabricState{State: "in-progress"}), first), []string{"error GPU-1: the NVLink fabric has not taken the GPU in yet: in-progress"}},
		{"in progress later", set(gpu.FabricState{State: "in-progress"}), []string{"fail GPU-1: the NVLink fabric has not taken the GPU in: in-progress"}},
		{"not started", set(gpu.FabricState{State: "not-started"}), []string{"fail GPU-1: the NVLink fabric has not taken the GPU in: not-started"}},
		{"degraded", set(gpu.FabricState{State: "completed", Health: []string{"degraded-bandwidth", "route-recovery"}}), []string{"fail GPU-1: the NVLink fabric complains: degraded-bandwidth"}},
		{"recovering", set(gpu.FabricState{State: "completed", Health: []string{"route-recovery"}}), []string{"warn GPU-1: the NVLink fabric works with less than its capacity: route-recovery"}},
		{"unhealthy", set(gpu.FabricState{State: "completed", Summary: gpu.Some("unhealthy")}), []string{"fail GPU-1: the NVLink fabric calls the GPU unhealthy"}},
		{"limited", set(gpu.FabricState{State: "completed", Summary: gpu.Some("limited")}), []string{"warn GPU-1: the NVLink fabric works with less than its capacity"}},
		{"healthy, of one node", set(gpu.FabricState{State: "completed", Cluster: "", Summary: gpu.Some("healthy")}), nil},
		{"no fabric", none, []string{"skip GPU-1: the driver does not report an NVLink fabric"}},
		{"no fabric, and the baseline wants one", all(none, expect(baseline.Card{Fabric: true})),
			[]string{"error GPU-1: the baseline expects what the driver does not report: NVLink fabric"}},
		{"divided", all(none, expect(baseline.Card{Fabric: true}), on(1, func(g *gpu.GPU) { g.Health.MIG = gpu.Some(gpu.Switch{Current: true}) })),
			[]string{"skip GPU-1: the driver does not report an NVLink fabric"}},
	})
}
