package xid

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
)

// storm is what a node's teardown looks like: so many lines of one job.
func storm(n int) []host.KernelRecord {
	out := make([]host.KernelRecord, n)
	for i := range out {
		out[i] = host.KernelRecord{
			Seq: uint64(i), Time: time.Unix(int64(i), 0),
			Text: fmt.Sprintf("NVRM: Xid (PCI:0000:%02x:00): 45, pid=%d, name=pt_main_thread, Ch %08x", 0x1b+i%8, 4000+i%64, i),
		}
	}
	return out
}

// Ten thousand XID 45 of eight GPUs are eight events, whatever their processes and
// channels, and ask for nothing; an event among them stays.
func TestStorm(t *testing.T) {
	records := storm(10000)
	records[5000].Text = "NVRM: Xid (PCI:0000:1b:00): 95, pid=1, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No"
	var p Parser
	var c Collector
	for _, r := range records {
		if e, ok := p.Add(r); ok {
			c.Add(e)
		}
	}
	events := c.Events()
	if len(events) != 9 || c.Dropped() != 0 {
		t.Fatalf("%d events, %d dropped", len(events), c.Dropped())
	}
	total := 0
	for i, j := range JudgeAll(events, catalogue(t)) {
		total += events[i].Count
		if (events[i].Code == 95) != (j.Severity == Fail) {
			t.Errorf("XID %d is %s", events[i].Code, j.Severity)
		}
	}
	if total != 10000 {
		t.Errorf("%d lines are counted", total)
	}
	if b, err := json.Marshal(events); err != nil || len(b) > 4000 {
		t.Errorf("the line of the probe takes %d bytes for it (%v)", len(b), err)
	}
}

// A line of a storm may cost a few small allocations, and none that stays.
func TestStormAllocations(t *testing.T) {
	records := storm(1000)
	var p Parser
	var c Collector
	per := testing.AllocsPerRun(10, func() {
		for _, r := range records {
			if e, ok := p.Add(r); ok {
				c.Add(e)
			}
		}
	}) / float64(len(records))
	if per > 10 {
		t.Errorf("%.1f allocations a line", per)
	}
	if n := len(c.Events()); n != 8 {
		t.Errorf("%d events", n)
	}
}

// A log of lines that are none of ours allocates nothing.
func TestForeignLinesAllocateNothing(t *testing.T) {
	line := []byte("Jan 17 03:22:10 node01 kernel: usb 1-1: new high-speed USB device number 2 using xhci_hcd")
	var l Log
	if n := testing.AllocsPerRun(100, func() { l.Add(line) }); n != 0 {
		t.Errorf("%v allocations a line", n)
	}
}

// The line of a 45 names its cause, else the event before it on the same GPU.
func TestCause(t *testing.T) {
	elsewhere := func(e Event) Event { e.PCI = "00000000:9B:00.0"; return e }
	recovery := xidEvent(154)
	recovery.To = gpu.Some(1)
	for _, tt := range []struct {
		name   string
		events []Event // the last one is the 45
		want   int
	}{
		{"alone", nil, 0},
		{"a fault before", []Event{at(1, xidEvent(31))}, 31},
		{"the last of two", []Event{at(1, xidEvent(31)), at(2, xidEvent(95))}, 95},
		{"in any order", []Event{at(2, xidEvent(95)), at(1, xidEvent(31))}, 95},
		{"another GPU's", []Event{at(1, elsewhere(xidEvent(31)))}, 0},
		{"after it", []Event{at(20, xidEvent(31))}, 0},
		{"other teardowns, a recommendation", []Event{at(1, xidEvent(45)), at(2, recovery)}, 0},
		{"fallen", []Event{at(1, Event{Kind: KindFallen, PCI: "00000000:3B:00.0"})}, 79},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := append(tt.events, at(10, xidEvent(45)))
			e, ok := Cause(events, len(events)-1)
			if e.CatalogueCode() != tt.want || ok != (tt.want != 0) {
				t.Errorf("caused by %d (%v), want %d", e.CatalogueCode(), ok, tt.want)
			}
		})
	}
}

func BenchmarkStorm10000(b *testing.B) {
	records := storm(10000)
	b.ReportAllocs()
	for b.Loop() {
		var p Parser
		var c Collector
		for _, r := range records {
			if e, ok := p.Add(r); ok {
				c.Add(e)
			}
		}
		if len(c.Events()) != 8 {
			b.Fatal(len(c.Events()))
		}
	}
}

// Lines of a log that raise nothing, which most do.
func BenchmarkForeignLine(b *testing.B) {
	line := []byte("Jan 17 03:22:10 node01 kernel: usb 1-1: new high-speed USB device number 2 using xhci_hcd")
	var l Log
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		l.Add(line)
	}
}
