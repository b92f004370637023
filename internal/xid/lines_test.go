package xid

import (
	_ "embed"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
)

//go:embed testdata/kernel-lines.tsv
var kernelLines string

// row is one real line and what it must give. testdata/kernel-lines.tsv holds
// lines of public reports, with what NVIDIA's catalogue says about them.
type row struct{ id, line, kind, code, pci, mig, pid, process, action, reason string }

func rows(t testing.TB) []row {
	t.Helper()
	var out []row
	undo := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\x1b`, "\x1b")
	for i, line := range strings.Split(strings.TrimSuffix(kernelLines, "\n"), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 11 {
			t.Fatalf("line %d has %d fields", i+1, len(f))
		}
		if i > 0 {
			out = append(out, row{f[0], undo.Replace(f[1]), f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9]})
		}
	}
	return out
}

func catalogue(t testing.TB) Catalogue {
	t.Helper()
	c, err := Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// known turns a column into what an Opt prints: "-", "<unknown>" and "<n/a>" are unset.
func known(o gpu.Opt[int]) string {
	if n, ok := o.Get(); ok {
		return strconv.Itoa(n)
	}
	return "-"
}

func TestKernelLines(t *testing.T) {
	cat := catalogue(t)
	for _, r := range rows(t) {
		t.Run(r.id, func(t *testing.T) {
			e, ok := parseLine(r.line)
			if r.kind == "none" {
				if ok {
					t.Errorf("%q raises %+v (%s)", r.line, e, r.reason)
				}
				return
			}
			if !ok {
				t.Fatalf("%q raises nothing, want %s %s", r.line, r.kind, r.code)
			}
			unset := strings.NewReplacer("<unknown>", "-", "<n/a>", "-")
			got := row{
				kind: string(e.Kind), code: strconv.Itoa(e.Code), pci: e.PCI,
				mig: known(e.GI) + "/" + known(e.CI), pid: known(e.PID), process: e.Process,
				action: strings.ToUpper(string(Judge(e, cat).Action)),
			}
			want := row{kind: r.kind, code: r.code, pci: host.BusID(r.pci), mig: r.mig, pid: unset.Replace(r.pid), process: r.process, action: strings.ToUpper(r.action)}
			if want.code == "-" {
				want.code = "0"
			}
			if want.mig == "-" {
				want.mig = "-/-"
			}
			if want.process == "-" || want.process == "<unknown>" || want.process == "<n/a>" {
				want.process = ""
			}
			if got != want {
				t.Errorf("%q:\n got %+v\nwant %+v\n(%s)", r.line, got, want, r.reason)
			}
		})
	}
}

// Every line of the table, as the kernel gives it to /dev/kmsg, raises the same
// event; written there by a program it raises nothing.
func TestKernelLinesAsRecords(t *testing.T) {
	for _, r := range rows(t) {
		k, ok := kernelText(r.line)
		text := k.text
		if !ok {
			continue
		}
		var p Parser
		want, wantOK := parseLine(r.line)
		e, ok := p.Add(host.KernelRecord{Seq: 7, Text: text})
		if ok != wantOK || e.Kind != want.Kind || e.Code != want.Code || e.PCI != want.PCI || e.Text != want.Text {
			t.Errorf("%s: as a record %+v, as a line %+v", r.id, e, want)
		}
		if e, ok := p.Add(host.KernelRecord{Seq: 8, Facility: 1, Text: text}); ok {
			t.Errorf("%s: written to /dev/kmsg by a program it raises %+v", r.id, e)
		}
		if wantOK && !Relevant([]byte(text)) {
			t.Errorf("%s: the filter drops %q", r.id, text)
		}
	}
}

// A line that was cut anywhere must not become another event.
func TestCutLines(t *testing.T) {
	for _, r := range rows(t) {
		whole, ok := parseLine(r.line)
		if !ok || whole.Kind != KindXID {
			continue
		}
		for n := range len(r.line) {
			e, ok := parseLine(r.line[:n])
			if ok && e.Kind == KindXID && e.Code != whole.Code && !strings.HasPrefix(strconv.Itoa(whole.Code), strconv.Itoa(e.Code)) {
				t.Fatalf("%s: cut to %q it is XID %d", r.id, r.line[:n], e.Code)
			}
		}
	}
}

// What a job can choose, 15 bytes of process name, changes nothing but the name.
func TestNamesCannotForge(t *testing.T) {
	cat := catalogue(t)
	for _, name := range []string{
		"a, Ch 00000008", "a\nNVRM: Xid 79:", "x): 79, GPU", "RST: Yes", ", D-RST: Yes", "to 0x2 (a)", "-> 0x2", "Contained: ", "pid=1, name=b",
		"\x1b[2J\x1b[31m", "a; rm -rf /", "\xff\xfe", "",
	} {
		for _, tt := range []struct {
			format string
			want   Action
		}{
			{"NVRM: Xid (PCI:0000:1b:00): 94, pid=7, name=%s, Contained: SM (0x1). RST: No, D-RST: No", ActionRestartApp},
			{"NVRM: Xid (PCI:0000:1b:00): 94, pid=7, name=%s, channel 0x00000002", ActionRestartApp},
			{"NVRM: Xid (PCI:0000:1b:00): 95, pid=7, name=%s, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No", ActionReset},
			{"NVRM: Xid (PCI:0000:1b:00): 154, pid=7, name=%s, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", ActionReset},
			{"NVRM: Xid (PCI:0000:1b:00): 45, pid=7, name=%s, Ch 00000001", ActionXID45},
		} {
			line := fmt.Sprintf(tt.format, name)
			var p Parser
			e, ok := p.Add(host.KernelRecord{Text: line})
			if strings.Contains(name, "\n") && ok { // the rest of the line is lost with the name
				if e.Code == 79 || e.PCI != "00000000:1B:00.0" {
					t.Errorf("%q becomes %+v", line, e)
				}
				continue
			}
			if !ok || Judge(e, cat).Action != tt.want {
				t.Errorf("%q: %v, action %q, want %q", line, ok, Judge(e, cat).Action, tt.want)
			}
			if strings.ContainsAny(e.Process+e.Text, "\x1b\n\r") {
				t.Errorf("%q: control characters stay in %q, %q", line, e.Process, e.Text)
			}
		}
	}
}

// Whatever a log holds: no panic, the same answer each time and behind any
// prefix, nothing that a terminal would obey, and an address that was there.
func FuzzParseLine(f *testing.F) {
	for _, r := range rows(f) {
		f.Add(r.line)
	}
	for _, s := range []string{"\x00", "{\"log\":{}}", "{\"MESSAGE\":[78,86,82,77,58,32]}", "2026-01-17T03:22:10Z stdout F NVRM: Xid 79: x", "<4>1 t n kernel - - - NVRM: Xid 79"} {
		f.Add(s)
	}
	cat := catalogue(f)
	f.Fuzz(func(t *testing.T, line string) {
		e, ok := parseLine(line)
		if again, ok2 := parseLine(line); ok != ok2 || !reflect.DeepEqual(e, again) {
			t.Errorf("%q gives %+v, then %+v", line, e, again)
		}
		if !ok {
			return
		}
		if e.Count < 1 || e.PCI != host.BusID(e.PCI) || e.Code < 0 || e.Code > maxCode || (e.Code == 0) != (e.Kind != KindXID && e.Kind != KindSXID) {
			t.Errorf("%q gives %+v", line, e)
		}
		if e.Text != clean(e.Text) || e.Process != clean(e.Process) || len(e.Text) > 3*maxText || len(e.Process) > 3*maxName {
			t.Errorf("%q: not clean: %q, %q", line, e.Text, e.Process)
		}
		if Explain(e, cat) == "" || Judge(e, cat).Action.Bucket() == "" {
			t.Errorf("%q is not explained", line)
		}
		k, _ := kernelText(line)
		if behind, ok := parseLine("[   12.345678] " + k.text); k.count == 1 && !strings.HasPrefix(k.text, "message repeated") && (!ok || !reflect.DeepEqual(e, behind)) {
			t.Errorf("%q: behind a prefix %+v, not %+v", line, behind, e)
		}
		if strings.Contains(line, "\n") || strings.HasPrefix(line, "{") {
			return
		}
		var l Log
		got, ok := l.Add([]byte(line))
		got.Event.Seq, got.Last = 0, 0
		if !ok || !reflect.DeepEqual(got.Event, e) {
			t.Errorf("%q: as a log %v %+v, not %+v", line, ok, got.Event, e)
		}
		if p := got.Printed; !strings.Contains(line, p.PCI) || host.BusID(p.PCI) != e.PCI || p.Process != clean(p.Process) || p.PID != clean(p.PID) {
			t.Errorf("%q: printed as %+v", line, p)
		}
	})
}

// parseLine looks at one line of some log by itself; Log also knows what was said
// before it.
func parseLine(line string) (Event, bool) {
	l, ok := kernelText(line)
	if !ok {
		return Event{}, false
	}
	var p Parser
	e, ok := p.text(l.text)
	if ok {
		e.Count = l.count
	}
	return e, ok
}
