package xid

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
)

// at makes an event with a place in the log: second n after an hour, record n.
func at(n int, e Event) Event {
	e.Seq, e.Last, e.Count = uint64(n), uint64(n), 1
	e.First = time.Date(2026, 1, 2, 3, 0, n, 0, time.UTC)
	e.Until = e.First
	return e
}

func recoverTo(n int) Event {
	e := xidEvent(154)
	e.To = gpu.Some(n)
	return e
}

func TestWindow(t *testing.T) {
	elsewhere := func(e Event) Event { e.PCI = "00000000:9B:00.0"; return e }
	inBoot := func(b string, e Event) Event { e.Boot = b; return e }
	events := []Event{at(10, xidEvent(95)), at(20, elsewhere(xidEvent(48))), at(30, xidEvent(31))}
	for _, tt := range []struct {
		name   string
		window Window
		events []Event
		want   []uint64 // their numbers
	}{
		{"everything", Window{}, events, []uint64{10, 20, 30}},
		{"since a good look", Window{After: gpu.Some[uint64](20)}, events, []uint64{30}},
		{"the first record was judged", Window{After: gpu.Some[uint64](0)}, []Event{at(0, xidEvent(79)), at(1, xidEvent(79))}, []uint64{1}},
		{"driver loaded again", Window{Loaded: gpu.Some[uint64](25)}, events, []uint64{30}},
		{"one GPU reset", Window{Resets: map[string]time.Time{"00000000:3B:00.0": at(15, Event{}).First}}, events, []uint64{20, 30}},
		{"a reset before it", Window{Resets: map[string]time.Time{"00000000:3B:00.0": at(5, Event{}).First}}, events, []uint64{10, 20, 30}},
		{"driver recommends nothing any more", Window{}, append(events, at(40, recoverTo(0))), []uint64{20, 40}},
		{"and then the next fault", Window{}, append(events, at(40, recoverTo(0)), at(50, xidEvent(95))), []uint64{20, 40, 50}},
		{"none for another GPU", Window{}, append(events, at(40, elsewhere(recoverTo(0)))), []uint64{10, 30, 40}},
		{"none of another GPU, before it", Window{}, append([]Event{at(5, elsewhere(recoverTo(0)))}, events...), []uint64{5, 10, 20, 30}},
		{"a later recommendation replaces", Window{}, []Event{at(1, recoverTo(2)), at(2, recoverTo(1)), at(3, xidEvent(31))}, []uint64{2, 3}},
		{"reset wanted again after none", Window{}, []Event{at(1, recoverTo(1)), at(2, recoverTo(0)), at(3, recoverTo(1))}, []uint64{3}},
		{"NVSwitch taken in again", Window{Probed: map[string]uint64{"00000000:06:00.0": 15}}, []Event{
			at(10, Event{Kind: KindSXID, PCI: "00000000:06:00.0"}), at(11, Event{Kind: KindSXID, PCI: "00000000:07:00.0"}),
			at(12, Event{Kind: KindXID, Code: 79, PCI: "00000000:06:00.0"}), at(20, Event{Kind: KindSXID, PCI: "00000000:06:00.0"}),
		}, []uint64{11, 12, 20}},
		{"another boot", Window{Boot: "b"}, []Event{inBoot("a", at(1, xidEvent(79))), inBoot("b", at(2, xidEvent(79))), at(3, xidEvent(79))}, []uint64{2, 3}},
		{"another boot's none cancels nothing", Window{Boot: "b"}, []Event{at(1, xidEvent(79)), inBoot("a", at(2, recoverTo(0)))}, []uint64{1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []uint64
			for _, e := range tt.window.Live(tt.events) {
				got = append(got, e.Seq)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("live %v, want %v", got, tt.want)
			}
		})
	}
}

// Joining events must not change what is cancelled.
func TestWindowOverCollapsed(t *testing.T) {
	storm := []Event{at(10, xidEvent(95)), at(20, recoverTo(0)), at(30, xidEvent(95))}
	live := Window{}.Live(Collapse(storm))
	if len(live) != 2 || live[0].Code != 95 || live[0].Count != 2 {
		t.Errorf("an event on both sides of a 154 to None: %+v", live)
	}
}

func TestCollapseStorm(t *testing.T) {
	var storm []Event
	for i := range 10000 {
		e := at(i, xidEvent(45))
		e.PID, e.Text = gpu.Some(4000+i), fmt.Sprintf("Ch %08x", i)
		storm = append(storm, e)
	}
	other := at(10000, xidEvent(45))
	other.PCI = "00000000:9B:00.0"
	got := Collapse(append(storm, other))
	if len(got) != 2 {
		t.Fatalf("%d events, want 2", len(got))
	}
	e := got[0]
	if e.Count != 10000 || e.Seq != 0 || e.Last != 9999 || !e.First.Equal(storm[0].First) || !e.Until.Equal(storm[9999].Until) {
		t.Errorf("got %+v", e)
	}
}

func TestCollapseKeepsDifferentDemands(t *testing.T) {
	echo := at(1, xidEvent(94))
	flagged := at(2, xidEvent(94))
	flagged.Reset = gpu.Some(true)
	instance := at(3, xidEvent(94))
	instance.GI = gpu.Some(1)
	fallen := at(4, Event{Kind: KindFallen, PCI: echo.PCI})
	events := []Event{echo, flagged, instance, fallen, at(5, recoverTo(1)), at(6, recoverTo(0)), at(7, xidEvent(79))}
	if got := Collapse(events); len(got) != len(events) {
		t.Errorf("%d of %d left: %+v", len(got), len(events), got)
	}
}

func TestCollapseSwitchTriple(t *testing.T) {
	var c Collector
	for i, line := range []string{
		"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
		"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 48 Sub-engine instance 00",
		"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Data {0x10000000, 0x10000000}",
	} {
		e, ok := parseLine(line)
		if !ok {
			t.Fatalf("%q raises nothing", line)
		}
		c.Add(at(i, e))
	}
	got := c.Events()
	if len(got) != 1 || got[0].Count != 1 || got[0].Switch != SwitchFatal || got[0].Last != 2 {
		t.Errorf("three lines of one SXid: %+v", got)
	}
}

func TestCollectorIsBounded(t *testing.T) {
	var c Collector
	for i := range maxDistinct + 5 {
		c.Add(at(i, xidEvent(1000+i)))
	}
	if n := len(c.Events()); n != maxDistinct || c.Dropped() != 5 {
		t.Errorf("%d kept, %d dropped; want %d and 5", n, c.Dropped(), maxDistinct)
	}
}

func TestAssign(t *testing.T) {
	events := []Event{xidEvent(79), {Kind: KindXID, Code: 79}}
	proc := []gpu.ProcGPU{{Address: "00000000:3B:00.0", UUID: "GPU-a"}, {Address: "00000000:9B:00.0"}}
	gpus := []gpu.GPU{{Identity: gpu.Identity{PCI: "00000000:9B:00.0", UUID: "GPU-b"}}}
	m := UUIDs(proc, gpus)
	Assign(events, m)
	if events[0].UUID != "GPU-a" || events[1].UUID != "" || m["00000000:9B:00.0"] != "GPU-b" {
		t.Errorf("got %+v by %v", events, m)
	}
}
