package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/cli"
)

// xidOf runs gpu-healthcheck xid with a log on standard input.
func xidOf(log string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := cli.Env{
		Program: "gpu-healthcheck", Args: append([]string{"xid", "--file", "-"}, args...),
		Stdin: strings.NewReader(log), Stdout: &out, Stderr: &errs, Now: time.Now,
	}
	code = cli.Run(env, newCommand)
	return code, out.String(), errs.String()
}

// printed is one line of --json as a stranger reads it.
type printed struct {
	Line                          int
	Kind, Action, Meaning         string
	Code, PCI, GI, CI, PID, Proc  any
	Time, Text, Count, UnknownKey any
}

func (p *printed) UnmarshalJSON(b []byte) error {
	m := map[string]any{}
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	for key, to := range map[string]*any{"code": &p.Code, "pci": &p.PCI, "gi": &p.GI, "ci": &p.CI, "pid": &p.PID, "process": &p.Proc, "time": &p.Time, "text": &p.Text, "count": &p.Count} {
		v, ok := m[key]
		if !ok {
			return fmt.Errorf("no key %q", key)
		}
		*to = v
	}
	line, _ := m["line"].(float64)
	p.Line = int(line)
	p.Kind, _ = m["kind"].(string)
	p.Action, _ = m["action"].(string)
	p.Meaning, _ = m["meaning"].(string)
	return nil
}

// columns writes it as the columns of kernel-lines.tsv.
func (p printed) columns() string {
	s := func(v any) string {
		switch v := v.(type) {
		case nil:
			return "-"
		case float64:
			return fmt.Sprintf("%.0f", v)
		}
		return fmt.Sprint(v)
	}
	mig := s(p.GI) + "/" + s(p.CI)
	if mig == "-/-" {
		mig = "-"
	}
	return strings.Join([]string{p.Kind, s(p.Code), s(p.PCI), mig, s(p.PID), s(p.Proc), p.Action}, "\t")
}

func objects(t *testing.T, out string) []printed {
	t.Helper()
	var list []printed
	for line := range strings.Lines(out) {
		var p printed
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, p)
	}
	return list
}

// Every line of the table through the command, each column compared, and the
// exit status.
func TestXIDOfKernelLines(t *testing.T) {
	b, err := os.ReadFile("../internal/xid/testdata/kernel-lines.tsv")
	if err != nil {
		t.Fatal(err)
	}
	undo := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\x1b`, "\x1b")
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if i == 0 {
			continue
		}
		f := strings.Split(line, "\t")
		log, kind, want, action := undo.Replace(f[1]), f[2], strings.Join(f[2:9], "\t"), f[8]
		code, out, errs := xidOf(log+"\n", "--json")
		got := objects(t, out)
		switch {
		case errs != "":
			t.Errorf("%s: %s", f[0], errs)
		case kind == "none" && (len(got) > 0 || code != 0):
			t.Errorf("%s: %q: status %d, %s", f[0], log, code, out)
		case kind == "none":
		case len(got) != 1:
			t.Errorf("%s: %q: %d objects", f[0], log, len(got))
		case got[0].columns() != want || got[0].Line != 1 || got[0].Meaning == "":
			t.Errorf("%s: %q:\n got %s\nwant %s", f[0], log, got[0].columns(), want)
		default:
			asks := 1
			if strings.Contains(" none IGNORE RESTART_APP WORKFLOW_XID_45 ", " "+action+" ") {
				asks = 0
			}
			if code != asks {
				t.Errorf("%s: status %d for %s", f[0], code, action)
			}
		}
	}
}

const incident = `Jan 17 03:20:00 n1 kernel: [100.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05
Jan 17 03:22:10 n1 kernel: [230.0] NVRM: Xid (PCI:0000:1b:00): 31, pid=4711, name=a` + "\x1b[2J\u202e" + `b, channel 0x00000002
Jan 17 03:22:10 n1 kernel: [230.1] NVRM: Xid (PCI:0000:1b:00): 45, pid=4711, name=ab, Ch 00000001
Jan 17 03:22:10 n1 kernel: [230.2] NVRM: Xid (PCI:0000:1b:00): 45, pid=4712, name=ab, Ch 00000002
Jan 17 03:23:00 n1 kernel: [279.9] NVRM: GPU at PCI:0000:3b:00: GPU-00000000-0000-0000-0000-000000000001
Jan 17 03:23:00 n1 kernel: [280.0] NVRM: Xid (PCI:0000:3b:00 GPU-I:02): 95, pid=1, Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No
Jan 17 03:24:00 n1 python3[12]: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.
Jan 17 03:25:00 n1 kernel: NVRM: The NVIDIA GPU 0000:18:00.0
Jan 17 03:25:00 n1 kernel: NVRM: (PCI ID: 10de:2901) installed in this system has
Jan 17 03:25:00 n1 kernel: NVRM: fallen off the bus and is not responding to commands.
Jan 17 03:26:00 n1 kernel: nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up
Jan 17 03:26:00 n1 kernel: nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 48 Sub-engine instance 00
Jan 17 03:26:00 n1 kernel: nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Data {0x10000000, 0x10000000}
Jan 17 03:27:00 n1 kernel: NVRM: Xid (PCI:0000:55:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)
Jan 17 03:28:00 n1 kernel: NVRM: Xid (PCI:0000:55:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to 0x0 (None)
`

func TestXIDPage(t *testing.T) {
	code, out, errs := xidOf(incident)
	if code != 1 || errs != "" {
		t.Errorf("status %d, %q", code, errs)
	}
	want, err := os.ReadFile("testdata/xid-page.txt")
	if err != nil {
		t.Fatal(err)
	}
	if out != string(want) {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestXIDWithoutEvents(t *testing.T) {
	for log, want := range map[string]string{
		"":                        "standard input: 0 lines, no GPU event\n",
		"usb 1-1: new device":     "standard input: 1 line, no GPU event\n",
		"a\nb\n\x00\xff\xfe\nc\n": "standard input: 4 lines, no GPU event\n",
	} {
		if code, out, errs := xidOf(log); code != 0 || out != want || errs != "" {
			t.Errorf("%q: status %d, %q, %q", log, code, out, errs)
		}
		if code, out, _ := xidOf(log, "--json"); code != 0 || out != "" {
			t.Errorf("%q: status %d, %q", log, code, out)
		}
	}
}

func TestXIDUsage(t *testing.T) {
	run := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		env := cli.Env{Program: "gpu-healthcheck", Args: append([]string{"xid"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now}
		return cli.Run(env, newCommand), errs.String()
	}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "give --file"},
		{[]string{"--file", "-", "more"}, 2, "unknown command"},
		{[]string{"--file", "/nonexistent/log"}, 3, "/nonexistent/log: no such file"},
		{[]string{"--file", t.TempDir()}, 3, "is a directory"},
	} {
		if code, errs := run(tt.args...); code != tt.code || !strings.Contains(errs, tt.says) {
			t.Errorf("%v: status %d, %q", tt.args, code, errs)
		}
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, errs := run("--file", path); code != 1 || errs != "" {
		t.Errorf("a file: status %d, %q", code, errs)
	}
}

// longLog is a log of many bytes that exists nowhere: foreign lines, one of them
// very long, and a storm of teardowns.
type longLog struct {
	left int
	rest []byte
	n    int
}

func (l *longLog) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if l.left <= 0 {
			return 0, io.EOF
		}
		l.n++
		switch {
		case l.n%5000 == 0:
			l.rest = []byte(strings.Repeat("x", 3<<20) + "NVRM: Xid (PCI:0000:1b:00): 79, x\n")
		case l.n%3 == 0:
			l.rest = fmt.Appendf(nil, "[%d.000000] NVRM: Xid (PCI:0000:1b:00): 45, pid=%d, name=python3, Ch %08x\n", l.n, l.n, l.n)
		default:
			l.rest = []byte("Jan 17 03:22:10 node01 kernel: usb 1-1: new high-speed USB device number 2 using xhci_hcd\n")
		}
		l.left -= len(l.rest)
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// A long log takes bounded memory, whatever its lines.
func TestXIDInBoundedMemory(t *testing.T) {
	var out, errs bytes.Buffer
	log := &longLog{left: 64 << 20}
	env := cli.Env{Program: "gpu-healthcheck", Args: []string{"xid", "--file", "-"}, Stdin: log, Stdout: &out, Stderr: &errs, Now: time.Now}
	if code := cli.Run(env, newCommand); code != 0 || errs.Len() > 0 {
		t.Errorf("status %d, %q", code, errs.String())
	}
	if s := out.String(); strings.Count(s, "XID 45") != 1 || strings.Contains(s, "79") && strings.Contains(s, "fallen") {
		t.Errorf("%.2000s", s)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 48<<20 {
		t.Errorf("%d MiB of heap after it", m.HeapAlloc>>20)
	}
}

type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func TestXIDUnreadable(t *testing.T) {
	var out, errs bytes.Buffer
	env := cli.Env{Program: "gpu-healthcheck", Args: []string{"xid", "--file", "-"}, Stdin: badReader{}, Stdout: &out, Stderr: &errs, Now: time.Now}
	if code := cli.Run(env, newCommand); code != 3 || !strings.Contains(errs.String(), "standard input: input/output error") {
		t.Errorf("status %d, %q", code, errs.String())
	}
}
