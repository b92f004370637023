package node

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// broken is a verdict by which a card fails a check.
func broken(at time.Time, class check.Class, code string, id gpu.Identity) verdict.Verdict {
	return verdict.Verdict{Time: at, Findings: []verdict.Finding{{
		Finding: check.Finding{Check: "c", Code: code, Class: class, Outcome: check.Fail, GPU: &id}, Policy: config.PolicyDrain,
	}}}
}

func TestFaultsAreEpisodes(t *testing.T) {
	d := Durable{Dir: t.TempDir()}
	id := gpu.Identity{Index: 1, UUID: "GPU-1", PCI: "00000000:20:00.0", Serial: gpu.Some("165")}
	good := func(at time.Time) Memory { return Memory{BootID: boot, GPUs: map[string]Good{"GPU-1": {Time: at}}} }
	steps := []struct {
		name    string
		memory  Memory
		verdict verdict.Verdict
		drained bool
		lines   int // in the history after it
		opens   int
	}{
		{"the first", Memory{}, broken(noon, check.Hardware, "LOST", id), false, 1, 1},
		{"the same", Memory{}, broken(noon.Add(time.Minute), check.Hardware, "LOST", id), false, 1, 1},
		{"its drain", Memory{}, broken(noon.Add(time.Minute), check.Hardware, "LOST", id), true, 2, 1},
		{"another code of it", Memory{}, broken(noon.Add(2*time.Minute), check.Hardware, "XID95", id), false, 3, 1},
		{"after a reboot, still there", Memory{BootID: "other"}, broken(noon.Add(time.Hour), check.Hardware, "LOST", id), false, 3, 1},
		{"after a good look", good(noon.Add(2 * time.Hour)), broken(noon.Add(3*time.Hour), check.Hardware, "LOST", id), false, 4, 2},
		{"no hardware", Memory{}, broken(noon.Add(4*time.Hour), check.Dirty, "LEFTOVER", id), false, 4, 2},
		{"no hardware, but drained", Memory{}, broken(noon.Add(4*time.Hour), check.Dirty, "LEFTOVER", id), true, 5, 2},
		{"in another slot", good(noon.Add(5 * time.Hour)), broken(noon.Add(6*time.Hour), check.Hardware, "LOST",
			gpu.Identity{Index: 4, UUID: "GPU-1", PCI: "00000000:90:00.0"}), false, 6, 3},
	}
	for _, s := range steps {
		texts, err := d.RecordFaults(s.memory, s.verdict, s.drained)
		if err != nil {
			t.Fatal(err)
		}
		all, err := d.Faults()
		if err != nil {
			t.Fatal(err)
		}
		cards := Cards(all, noon.Add(24*time.Hour))
		if len(all) != s.lines || len(cards) != 1 || cards[0].Episodes != s.opens {
			t.Errorf("%s: %d lines, %+v", s.name, len(all), cards)
		}
		if lemon := len(texts) > 0; lemon != (s.opens == 3) {
			t.Errorf("%s: says %q", s.name, texts)
		}
	}
	all, err := d.Faults()
	if err != nil {
		t.Fatal(err)
	}
	c := Cards(all, noon.Add(24*time.Hour))[0]
	if !c.Lemon() || !c.Open || c.Drains != 2 || len(c.Slots) != 2 || c.GPU.Serial.Or("") != "165" || c.Codes["LOST"] != 4 {
		t.Errorf("%+v", c)
	}
	if c := Cards(all, noon.AddDate(0, 2, 0))[0]; c.Lemon() || c.Episodes != 3 {
		t.Errorf("two months later: %+v", c)
	}
	if err := d.Acknowledge(Memory{}, []gpu.Identity{id}, "ada", "replaced", noon.Add(7*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.RecordFaults(Memory{}, broken(noon.Add(8*time.Hour), check.Hardware, "LOST", id), false); err != nil {
		t.Fatal(err)
	}
	if all, err = d.Faults(); err != nil || Cards(all, noon)[0].Episodes != 4 {
		t.Errorf("an acknowledged fault does not come anew: %v, %+v", err, all)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	d := Durable{Dir: t.TempDir()}
	var b strings.Builder
	for i := range maxFaults {
		fmt.Fprintf(&b, `{"time":"2026-07-01T12:00:00Z","kind":"ack","text":"%d"}`+"\n", i)
	}
	b.WriteString("{half a li\n{}\n")
	if err := os.WriteFile(d.path("faults.jsonl"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.RecordFaults(Memory{}, broken(noon, check.Hardware, "LOST", gpu.Identity{UUID: "GPU-1"}), false); err != nil {
		t.Fatal(err)
	}
	all, err := d.Faults()
	if err != nil || len(all) != maxFaults || all[0].Text != "1" || all[maxFaults-1].Code != "LOST" {
		t.Errorf("%d lines, %v", len(all), err)
	}
}

// A node without faults has no history, and no file.
func TestNoFaultsNoFile(t *testing.T) {
	d := Durable{Dir: t.TempDir() + "/state"}
	if texts, err := d.RecordFaults(Memory{}, verdict.Verdict{}, false); err != nil || texts != nil {
		t.Errorf("%q, %v", texts, err)
	}
	if _, err := os.Stat(d.path("faults.jsonl")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func TestFaultsOfManyAtOnce(t *testing.T) {
	d := Durable{Dir: t.TempDir()}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			id := gpu.Identity{UUID: fmt.Sprintf("GPU-%d", i), PCI: fmt.Sprint(i)}
			if _, err := d.RecordFaults(Memory{}, broken(noon, check.Hardware, "LOST", id), false); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if faults, err := d.Faults(); err != nil || len(faults) != 16 {
		t.Errorf("%d lines, %v", len(faults), err)
	}
}

func TestDrainsAreKept(t *testing.T) {
	d := Durable{Dir: t.TempDir() + "/state"}
	if got, err := d.Drains(); err != nil || got.Drained != nil {
		t.Errorf("%+v, %v", got, err)
	}
	want := Drained{Reason: "[HC] DEVNODE x", Code: "DEVNODE", Class: check.Driver, Time: noon}
	if err := d.KeepDrains(Drains{AskedBoot: boot, Drained: &want}); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Drains(); err != nil || got.AskedBoot != boot || *got.Drained != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "{", `{"schema":"gpuhooks.drained/9","drained":{"reason":"x"}}`} {
		if err := os.WriteFile(d.path("drained.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Drains(); err == nil || got.Drained != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
