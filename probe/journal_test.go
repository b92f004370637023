//go:build cgo

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/host"
	"gpuhooks/internal/xid"
)

// fakeJournal is a journalctl that says what the test wants.
func fakeJournal(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journalctl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// entries prints records as journalctl -o json does: microseconds, then text.
func entries(records ...any) string {
	var b strings.Builder
	b.WriteString("cat <<'END'\n")
	for i := 0; i < len(records); i += 2 {
		text, _ := json.Marshal(records[i+1])
		fmt.Fprintf(&b, `{"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","_SOURCE_MONOTONIC_TIMESTAMP":"%d","MESSAGE":%s}`+"\n", records[i], text)
	}
	return b.String() + "END"
}

func xidText(code int) string { return fmt.Sprintf("NVRM: Xid (PCI:0000:3b:00): %d, x", code) }

func TestJournalFill(t *testing.T) {
	whole := entries(90, xidText(31), 100, xidText(31), 110, "a", 120, xidText(95), 130, xidText(45), 140, "NVRM: x", 150, xidText(79), 160, xidText(79))
	for _, tt := range []struct {
		name, script string
		lost         uint64
		left         uint64
		events       string // code at record number
	}{
		{"covers the gap", whole, 4, 0, "95@7 45@8"},
		{"some are missing", entries(100, "a", 120, xidText(95), 150, "b"), 4, 3, "95@9"},
		{"knows nothing of it", entries(90, "a", 160, "b"), 4, 4, ""},
		{"is empty", "true", 4, 4, ""},
		{"fails", "exit 1", 4, 4, ""},
		{"fails after its answer", whole + "\nexit 1", 4, 0, "95@7 45@8"},
		{"talks nonsense", "echo hello; echo {; echo '[]'; echo '{\"_SOURCE_MONOTONIC_TIMESTAMP\":\"x\"}'", 4, 4, ""},
		{"a program's records", `echo '{"_TRANSPORT":"kernel","SYSLOG_FACILITY":"1","_SOURCE_MONOTONIC_TIMESTAMP":"120","MESSAGE":"` + xidText(79) + `"}'`, 1, 0, ""},
		{"another transport", `echo '{"_TRANSPORT":"syslog","_SOURCE_MONOTONIC_TIMESTAMP":"120","MESSAGE":"` + xidText(79) + `"}'`, 1, 1, ""},
		{"a line of a megabyte", "head -c 1000000 /dev/zero | tr '\\0' x; echo; " + whole, 4, 0, "95@7 45@8"},
		{"has more than was lost", whole, 3, 0, "95@7 45@8"},
		{"gets no environment", "[ -z \"$HOME$SLURM_JOB_ID\" ] && [ \"$PWD\" = / ] && " + whole, 4, 0, "95@7 45@8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("SLURM_JOB_ID", "7")
			g := host.Overrun{Lost: tt.lost, Next: 10, Since: 100, Until: 150}
			got := journal(fakeJournal(t, tt.script)).fill(context.Background(), g, time.Unix(1000, 0))
			var events []string
			for _, e := range got.events {
				events = append(events, fmt.Sprintf("%d@%d", e.Code, e.Seq))
			}
			if got.lost != tt.left || strings.Join(events, " ") != tt.events && tt.name != "has more than was lost" {
				t.Errorf("%d left, events %q; want %d, %q", got.lost, events, tt.left, tt.events)
			}
		})
	}
}

// A journalctl that hangs, with or without an answer, costs two seconds.
func TestJournalThatHangs(t *testing.T) {
	t.Parallel()
	began := time.Now()
	g := host.Overrun{Lost: 1, Next: 10, Since: 100, Until: 150}
	got := journal(fakeJournal(t, entries(120, xidText(95))+"\nsleep 60")).fill(context.Background(), g, time.Unix(1000, 0))
	if took := time.Since(began); took > 3*time.Second || got.lost != 0 || len(got.events) != 1 {
		t.Errorf("%v: %+v", took, got)
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.json")
	for i := range uint64(100) {
		if err := loadMarks(path, "b").save(path, i, 10*i+1, 3); err != nil {
			t.Fatal(err)
		}
	}
	m := loadMarks(path, "b")
	if len(m.Marks) != maxMarks || m.time(99) != 991 || m.time(1) != 0 || m.time(3) != 31 {
		t.Errorf("%d marks, %+v", len(m.Marks), m.Marks[0])
	}
	if m := loadMarks(path, "another boot"); len(m.Marks) != 0 {
		t.Errorf("of another boot: %+v", m)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m := loadMarks(path, "b"); len(m.Marks) != 0 {
		t.Errorf("broken: %+v", m)
	}
}

// kmsg appends records with chosen numbers to a node's kernel log, one a microsecond.
func kmsg(t *testing.T, root string, first uint64, texts ...string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(root, "dev/kmsg"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, text := range texts {
		if _, err := fmt.Fprintf(f, "4,%d,%d,-;%s\n", first+uint64(i), 1000*(first+uint64(i)), text); err != nil {
			t.Fatal(err)
		}
	}
}

// The first look ends at record 5; then records 6 to 49 are overwritten before
// the second one. The journal has them.
func TestReadAsksTheJournal(t *testing.T) {
	n := newNode(t, "dgx-h100")
	pci := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(readOnce(t, n).gpus[0].PCI, "0000"), ".0"))
	lost := "NVRM: Xid (PCI:" + pci + "): 95, x"
	var records []any
	for seq := 1; seq < 60; seq++ {
		text := "usb"
		if seq == 20 || seq == 3 || seq == 55 {
			text = lost
		}
		records = append(records, 1000*seq, text)
	}
	whole := fakeJournal(t, entries(records...))
	part := fakeJournal(t, entries(records[:60]...))
	hangs := fakeJournal(t, "sleep 60")
	run := t.TempDir()
	look := func(after, journal string, identity string) (kernels []driver.Kernel) {
		cmd := probe(t, "read", "--root", n.Root(), "--nvml", n.Library(), "--tier", "0", "--after", after, "--journal", journal, "--identity", filepath.Join(run, identity))
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out) {
			var l driver.Line
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatal(err)
			}
			if l.Kernel != nil {
				kernels = append(kernels, *l.Kernel)
			}
		}
		return kernels
	}
	if err := os.Remove(filepath.Join(n.Root(), "dev/kmsg")); err != nil {
		t.Fatal(err)
	}
	kmsg(t, n.Root(), 0, "a", "b", "c", "d", "e", "f")
	if k := look("0", whole, "identity.json"); len(k) != 1 || k[0].LastSeq != 5 || k[0].Lost != 0 {
		t.Fatalf("the first look: %+v", k)
	}
	kmsg(t, n.Root(), 50, "usb", xidText(31))
	for _, tt := range []struct {
		name, journal, identity string
		lost                    uint64
		codes                   string
	}{
		{"whole", whole, "identity.json", 0, "95x1 31x1"},
		{"a part", part, "identity.json", 44 - 25, "95x1 31x1"},
		{"no journal", "", "identity.json", 44, "31x1"},
		{"no such program", "/nonexistent/journalctl", "identity.json", 44, "31x1"},
		{"hangs", hangs, "identity.json", 44, "31x1"},
		{"nobody knows when record 5 was", whole, "other/identity.json", 44, "31x1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			all := look("5", tt.journal, tt.identity)
			if first := all[0]; first.Lost != 44 || len(first.Events) != 1 {
				t.Errorf("at once: %+v", first)
			}
			k := all[len(all)-1]
			var codes []string
			for _, e := range k.Events {
				codes = append(codes, fmt.Sprintf("%dx%d", e.Code, e.Count))
			}
			if k.Lost != tt.lost || strings.Join(codes, " ") != tt.codes || k.LastSeq != 51 {
				t.Errorf("%d lost, events %v, up to %d; want %d, %s", k.Lost, codes, k.LastSeq, tt.lost, tt.codes)
			}
			if took := time.Since(began); took > 30*time.Second { // the one that hangs does so for ever
				t.Errorf("took %v", took)
			}
		})
	}
}

// A gap under a running job: the journal closes it, or the run's events are
// incomplete.
func TestSamplerAsksTheJournal(t *testing.T) {
	for _, covered := range []bool{true, false} {
		t.Run(fmt.Sprint("covered ", covered), func(t *testing.T) {
			b := newBed(t, "200ms", "dgx-h100")
			pci := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(b.ids[0].PCI, "0000"), ".0"))
			log := filepath.Join(b.node.Root(), "dev/kmsg")
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
			kmsg(t, b.node.Root(), 0, "a", "b")
			var records []any
			for seq := 1; seq < 9; seq++ {
				text := "usb"
				if seq == 5 {
					text = "NVRM: Xid (PCI:" + pci + "): 94, x"
				}
				if covered || seq != 6 {
					records = append(records, 1000*seq, text)
				}
			}
			b.args = append(b.args, "--journal", fakeJournal(t, entries(records...)))
			n := b.begin(1, 0)
			p := b.sampler()
			b.samples(n)
			time.Sleep(300 * time.Millisecond)
			kmsg(t, b.node.Root(), 8, "x") // 2 to 7 are lost
			time.Sleep(1500 * time.Millisecond)
			s, _ := b.end(n)
			p.leaves(t, 2*time.Second)
			if s.EventsIncomplete == covered || len(s.Events) != 1 || s.Events[0].Code != 94 || s.Events[0].Count != 1 {
				t.Errorf("incomplete %v, events %+v; %s", s.EventsIncomplete, s.Events, p.output.String())
			}
		})
	}
}

// Ten thousand lines of one teardown are one event, and the worst line that the
// probe may send is one that its reader takes.
func TestKernelLineIsBounded(t *testing.T) {
	t.Parallel()
	var c xid.Collector
	nasty := strings.Repeat("<", 400)
	for i := range 20000 {
		var p xid.Parser
		e, ok := p.Add(host.KernelRecord{Seq: uint64(i), Text: fmt.Sprintf("NVRM: Xid (PCI:%04x:3b:00): %d, pid=%d, name=%s, %s", i%16, 1+i%170, i, nasty, nasty)})
		if !ok {
			t.Fatal("no event")
		}
		c.Add(e)
	}
	b, err := json.Marshal(driver.Line{Kernel: &driver.Kernel{Events: c.Events()}})
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 1<<20 { // internal/driver's maxLine
		t.Errorf("the worst kernel line has %d bytes, its reader takes a MiB", len(b))
	}
}
