package check

import (
	"fmt"
	"testing"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

// event is one line of the kernel log about a card.
func event(code int, index int) xid.Event {
	g := card(index)
	return xid.Event{Kind: xid.KindXID, Code: code, PCI: g.PCI, Seq: 5, Last: 5, First: noon, Until: noon, Count: 1}
}

func logged(events ...xid.Event) func(*Input) {
	return func(in *Input) { in.Kernel.Events = events }
}

func TestGPULost(t *testing.T) {
	lost := func(g *gpu.GPU) {
		g.Faults = []gpu.Fault{{Call: "nvmlDeviceGetPowerUsage", Code: 15, Kind: gpu.FaultLost}}
	}
	fell := event(0, 1)
	fell.Kind = xid.KindFallen
	nameless := fell
	nameless.PCI = ""
	unlisted := event(79, 5)
	runTests(t, gpuLost, []test{
		{"NVML says so", on(1, lost), []string{"fail GPU-1: fell off the bus: NVML answers GPU_IS_LOST"}},
		{"the kernel log says so", logged(event(79, 1)), []string{"fail GPU-1: fell off the bus: XID 79 in the kernel log at 2026-07-01T12:00:00Z"}},
		{"in words", logged(fell), []string{`fail GPU-1: fell off the bus: "fallen off the bus" in the kernel log at 2026-07-01T12:00:00Z`}},
		{"in words and as a number", logged(fell, event(79, 1)), []string{"fail GPU-1: fell off the bus: XID 79 in the kernel log at 2026-07-01T12:00:00Z"}},
		{"of a card without address", logged(nameless), []string{`fail node: fell off the bus: "fallen off the bus" in the kernel log at 2026-07-01T12:00:00Z`}},
		{"of a card that nobody lists", logged(unlisted), []string{"fail 00000000:60:00.0: fell off the bus: XID 79 in the kernel log at 2026-07-01T12:00:00Z"}},
		{"both: one finding", func(in *Input) {
			on(1, lost)(in)
			logged(event(79, 1))(in)
		}, []string{"fail GPU-1: fell off the bus: NVML answers GPU_IS_LOST; XID 79 in the kernel log at 2026-07-01T12:00:00Z"}},
		{"NVML does not list it", func(in *Input) { drop(in, 1) }, []string{"fail GPU-1: fell off the bus: the kernel has it, NVML does not list it"}},
		{"the answer broke off", func(in *Input) {
			drop(in, 1)
			in.Answer = gpu.AnswerPartial
		}, nil},
		{"given to a virtual machine", func(in *Input) {
			drop(in, 1)
			in.Node.Presence.PCI[1].Driver = "vfio-pci"
		}, nil},
		{"another job's card", func(in *Input) {
			on(1, lost)(in)
			in.Only = []string{"GPU-0"}
		}, nil},
		{"another number", logged(event(31, 1)), nil},
	})
}

func TestXIDs(t *testing.T) {
	contained, recovered := event(94, 1), event(154, 1)
	recovered.To = gpu.Some(0)
	asksReset := event(154, 1)
	asksReset.To = gpu.Some(1)
	sw := xid.Event{Kind: xid.KindSXID, Code: 20034, PCI: "00000000:c1:00.0", Switch: xid.SwitchFatal, Until: noon, Count: 1}
	mismatch := xid.Event{Kind: xid.KindMismatch, Until: noon, Count: 3}
	first := func(c Check, in Input) []string {
		var out []string
		for _, f := range c.Run(in) {
			out = append(out, string(f.Outcome)+" "+f.Code)
		}
		return out
	}
	tests := []struct {
		name   string
		change func(*Input)
		want   string
	}{
		{"nothing", func(*Input) {}, "[]"},
		{"of the application", logged(event(31, 1), event(13, 0), event(43, 0)), "[]"},
		{"contained", logged(contained), "[]"},
		{"uncontained", logged(event(95, 1)), "[fail XID95]"},
		{"GSP timeout", logged(event(119, 0), event(119, 0)), "[fail XID119]"},
		{"two cards", logged(event(95, 0), event(95, 1)), "[fail XID95 fail XID95]"},
		{"lost is another check", logged(event(79, 1)), "[]"},
		{"driver asks for a reset", logged(asksReset), "[fail XID154]"},
		{"driver asks for nothing any more", logged(recovered), "[]"},
		{"NVSwitch", logged(sw), "[fail SXID20034]"},
		{"library of a client", logged(mismatch), "[warn ]"},
		{"another job's card", func(in *Input) {
			logged(event(95, 1))(in)
			in.Only = []string{"GPU-0"}
		}, "[]"},
		{"log not read", func(in *Input) { in.Kernel = Kernel{Why: "no permission"} }, "[error ]"},
		{"log overrun", func(in *Input) {
			logged(event(95, 1))(in)
			in.Kernel.Lost = 12
		}, "[error  fail XID95]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := healthy(2)
			tt.change(&in)
			if got := fmt.Sprint(first(xids, in)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	in := healthy(2)
	logged(event(95, 1))(&in)
	got := show(xids.Run(in)[0])
	want := "fail XID95 GPU-1: " + xid.Explain(xid.Event{Kind: xid.KindXID, Code: 95}, in.Catalog()) + "; XID 95 in the kernel log at 2026-07-01T12:00:00Z"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
