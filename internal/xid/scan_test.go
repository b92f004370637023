package xid

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
)

// kernelLog writes records, numbered and one second apart, and opens them.
func kernelLog(t testing.TB, texts ...string) (*host.KernelLog, func(...string)) {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, "dev/kmsg")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	n := 0
	write := func(texts ...string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, s := range texts {
			priority := 4
			if rest, ok := strings.CutPrefix(s, "user:"); ok {
				priority, s = 12, rest
			}
			fmt.Fprintf(f, "%d,%d,%d,-;%s\n", priority, n, n*1000000, s)
			n++
		}
	}
	write(texts...)
	l, err := host.OpenKernelLog(host.NewFS(root), time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, write
}

func codes(events []Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %d x%d", e.Kind, e.CatalogueCode(), e.Count))
	}
	return out
}

func TestScan(t *testing.T) {
	log, write := kernelLog(t,
		"Linux version 6.1",
		"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05",
		"NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python3, Ch 00000008",
		"user:NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
		"NVRM: Xid (PCI:0000:3b:00): 31, pid=8, name=python3, Ch 00000009",
		"nvidia-nvswitch: Probing device 0000:06:00.0, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000",
		"NVRM: The NVIDIA GPU 0000:9b:00.0",
	)
	var p Parser
	b, err := Scan(log, &p)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := codes(b.Events), []string{"xid 31 x2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if b.LastSeq != 6 || b.Probed["00000000:06:00.0"] != 5 || len(b.Probed) != 1 || b.Lost != 0 || b.Loaded != gpu.Some[uint64](1) {
		t.Errorf("last %d, lost %d, loaded %v; want 6, 0, 1", b.LastSeq, b.Lost, b.Loaded)
	}
	if e := b.Events[0]; e.Seq != 2 || e.Last != 4 || e.Until.Sub(e.First) != 2*time.Second || e.PID != gpu.Some(7) {
		t.Errorf("joined as %+v", e)
	}
	// The second half of a message that began in the first Scan, with other
	// records of the driver between.
	write("NVRM: (PCI ID: 10de:26b5) installed in this system has", "NVRM: GPU Board Serial Number: 1", "NVRM: fallen off the bus and is not responding to commands.")
	b, err = Scan(log, &p)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Events) != 1 || b.Events[0].Kind != KindFallen || b.Events[0].PCI != "00000000:9B:00.0" || b.Events[0].Seq != 9 {
		t.Errorf("then %+v, want GPU 9B fallen", b.Events)
	}
}

// The end of a fallen message alone still means a lost GPU, only not which; and
// what a GPU's name began long ago is not the one.
func TestFallenWithoutItsBeginning(t *testing.T) {
	log, _ := kernelLog(t, "NVRM: The NVIDIA GPU 0000:9b:00.0", "NVRM: a", "NVRM: b", "NVRM: c", "NVRM: d", "NVRM: fallen off the bus and is not responding to commands.")
	b, err := Scan(log, new(Parser))
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Events) != 1 || b.Events[0].Kind != KindFallen || b.Events[0].PCI != "" {
		t.Errorf("got %+v, want one fallen without an address", b.Events)
	}
}

func TestScanSaysWhatIsLost(t *testing.T) {
	log, _ := kernelLog(t, "a", "b", "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
	log.SeekAfter(0)
	if b, err := Scan(log, new(Parser)); err != nil || b.Lost != 0 || len(b.Events) != 1 {
		t.Errorf("without a gap: %+v, %v", b, err)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "dev/kmsg"), []byte("6,100,5,-;x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := host.OpenKernelLog(host.NewFS(root), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	log.SeekAfter(49)
	if b, err := Scan(log, new(Parser)); err != nil || b.Lost != 50 || b.LastSeq != 100 {
		t.Errorf("after a gap: %+v, %v; want 50 lost", b, err)
	}
}

func TestEventThroughJSON(t *testing.T) {
	for _, r := range rows(t) {
		e, ok := parseLine(r.line)
		if !ok {
			continue
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back Event
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(e, back) {
			t.Errorf("%s: %s\n got %+v\nwant %+v (%v)", r.id, b, back, e, err)
		}
	}
}

// A storm of 20 000 lines must not cost a prolog its deadline.
func BenchmarkScanStorm20000(b *testing.B) {
	storm := make([]string, 20000)
	for i := range storm {
		storm[i] = fmt.Sprintf("NVRM: Xid (PCI:0000:3b:00): 45, pid=%d, name=pt_main_thread, Ch %08x", i, i)
	}
	log, _ := kernelLog(b, storm...)
	var text []host.KernelRecord
	for {
		r, err := log.Next()
		if err != nil {
			break
		}
		text = append(text, r)
	}
	for b.Loop() {
		var p Parser
		var c Collector
		for _, r := range text {
			if e, ok := p.Add(r); ok {
				c.Add(e)
			}
		}
		if len(c.Events()) != 1 {
			b.Fatal(len(c.Events()))
		}
	}
}
