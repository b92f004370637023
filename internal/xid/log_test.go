package xid

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
)

// read takes a whole log.
func read(text string) (*Log, []Line) {
	var l Log
	var out []Line
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if e, ok := l.Add([]byte(line)); ok {
			out = append(out, e)
		}
	}
	return &l, out
}

// show writes a line's event as the columns of kernel-lines.tsv.
func show(l Line, c Catalogue) string {
	or := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	code := "-"
	if l.Code != 0 {
		code = strconv.Itoa(l.Code)
	}
	mig := known(l.GI) + "/" + known(l.CI)
	if mig == "-/-" {
		mig = "-"
	}
	return strings.Join([]string{string(l.Kind), code, or(l.Printed.PCI), mig, or(l.Printed.PID), or(l.Printed.Process), Judge(l.Event, c).Action.Bucket()}, "\t")
}

// Every line of the table, each as a log of its own and all of them as one log.
func TestKernelLinesAsLog(t *testing.T) {
	cat := catalogue(t)
	var all bytes.Buffer
	var want, got []string
	number := 1
	for _, r := range rows(t) {
		columns := strings.Join([]string{r.kind, r.code, r.pci, r.mig, r.pid, r.process, r.action}, "\t")
		_, events := read(r.line)
		switch {
		case r.kind == "none" && len(events) > 0:
			t.Errorf("%s: %q raises %s", r.id, r.line, show(events[0], cat))
		case r.kind != "none" && len(events) != 1:
			t.Errorf("%s: %q raises %d events", r.id, r.line, len(events))
		case r.kind != "none":
			if s := show(events[0], cat); s != columns {
				t.Errorf("%s: %q:\n got %s\nwant %s", r.id, r.line, s, columns)
			}
			want = append(want, fmt.Sprint(number, "\t", columns))
		}
		all.WriteString(r.line + "\n")
		number += strings.Count(r.line, "\n") + 1
	}
	_, events := read(all.String())
	for _, e := range events {
		got = append(got, fmt.Sprint(e.Seq, "\t", show(e, cat)))
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("missing %s", want[i])
		case i >= len(want):
			t.Fatalf("too much: %s", got[i])
		case got[i] != want[i]:
			t.Fatalf("as one log:\n got %s\nwant %s", got[i], want[i])
		}
	}
}

// What logs put around a line changes nothing of it but its time.
func TestLogForms(t *testing.T) {
	const message = "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python3, Ch 00000008"
	const escaped = `NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python3, Ch 00000008`
	for _, tt := range []struct{ name, line, stamp string }{
		{"bare", message, ""},
		{"dmesg", "[12345.678901] " + message, "12345.678901"},
		{"dmesg with threads", "[12345.678901] [ T1946] " + message, "12345.678901"},
		{"dmesg with CPUs", "[12345.678901][    C3] " + message, "12345.678901"},
		{"dmesg -T", "[Fri Sep 30 07:24:24 2022] " + message, "Fri Sep 30 07:24:24 2022"},
		{"dmesg -x", "kern  :warn  : [12345.678901] " + message, "12345.678901"},
		{"dmesg -x --time-format iso", "kern  :warn  : 2026-01-17T03:22:10,123456+00:00 " + message, "2026-01-17T03:22:10,123456+00:00"},
		{"dmesg -r", "<4>[12345.678901] " + message, "12345.678901"},
		{"dmesg -d", "[12345.678901 <    0.000003>] " + message, "12345.678901 <    0.000003>"},
		{"dmesg -e", "[Jan17 03:22] " + message, "Jan17 03:22"},
		{"dmesg -e, the next", "[  +0.000003] " + message, "+0.000003"},
		{"dmesg --color", "\x1b[32m[12345.678901] \x1b[0m\x1b[33mNVRM: \x1b[0mXid (PCI:0000:3b:00): 31, pid=7, name=python3, Ch 00000008", "12345.678901"},
		{"kmsg", "4,8812,771234567,-;" + message, ""},
		{"kmsg with a caller", "4,8812,771234567,-,caller=T1946;" + message, ""},
		{"syslog", "Jan 17 03:22:10 node01 kernel: [12345.678901] " + message, "Jan 17 03:22:10"},
		{"syslog of another language", "Okt  7 21:02:39 node01 kernel: " + message, "Okt 7 21:02:39"},
		{"syslog, ISO", "2026-01-17T03:22:10.123456+00:00 node01 kernel: [12345.678901] " + message, "2026-01-17T03:22:10.123456+00:00"},
		{"syslog, RFC 5424", "<4>1 2026-01-17T03:22:10.123456+00:00 node01 kernel - - - " + message, "2026-01-17T03:22:10.123456+00:00"},
		{"journal", "Jan 17 03:22:10 node01 kernel: " + message, "Jan 17 03:22:10"},
		{"journal without host", "Jan 17 03:22:10 kernel: " + message, "Jan 17 03:22:10"},
		{"journal, short-iso", "2026-01-17T03:22:10+0100 node01 kernel: " + message, "2026-01-17T03:22:10+0100"},
		{"journal, short-full", "Sat 2026-01-17 03:22:10 UTC node01 kernel: " + message, "Sat 2026-01-17 03:22:10"},
		{"journal, short-monotonic", "[12345.678901] node01 kernel: " + message, "12345.678901"},
		{"journal, short-unix", "1768620130.123456 node01 kernel: " + message, ""},
		{"journal, JSON", `{"__REALTIME_TIMESTAMP":"1768620130123456","_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","MESSAGE":"` + escaped + `"}`, "2026-01-17T03:22:10Z"},
		{"journal, JSON of bytes", `{"_TRANSPORT":"kernel","MESSAGE":` + strings.ReplaceAll(fmt.Sprint([]byte(message)), " ", ",") + `}`, ""},
		{"docker", `{"log":"[12345.678901] ` + escaped + `\n","stream":"stdout","time":"2026-01-17T03:22:10.123456789Z"}`, "2026-01-17T03:22:10.123456789Z"},
		{"docker around the journal", `{"log":"{\"_TRANSPORT\":\"kernel\",\"MESSAGE\":\"` + escaped + `\"}\n","stream":"stdout"}`, ""},
		{"containerd", "2026-01-17T03:22:10.123456789Z stdout F [12345.678901] " + message, "2026-01-17T03:22:10.123456789Z"},
		{"containerd around JSON", `2026-01-17T03:22:10.123456789Z stderr F {"log":"` + escaped + `\n"}`, "2026-01-17T03:22:10.123456789Z"},
		{"an agent", `{"level":"info","ts":"2026-01-17T03:22:10Z","details":{"message":"` + escaped + `"}}`, "2026-01-17T03:22:10Z"},
		{"an agent with other keys", `{"time":17,"details":"none","message":"` + escaped + `"}`, "17"},
		{"windows line end", "[12345.678901] " + message + "\r", "12345.678901"},
		{"zeros of a crash before it", "\x00\x00\x00Jan 17 03:22:10 node01 kernel: " + message, "Jan 17 03:22:10"},
		{"zeros behind it", message + "\x00\x00", ""},
		{"byte order mark", "\ufeff" + message, ""},
		{"prefix twice", "Jan 17 03:22:10 node01 kernel: Jan 17 03:22:10 node01 kernel: " + message, "Jan 17 03:22:10"},
		{"kernel twice", "kernel: kernel: " + message, ""},
		{"blanks", "   \t" + message + "  \t ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got := read(tt.line)
			if len(got) != 1 {
				t.Fatalf("%q raises %d events", tt.line, len(got))
			}
			e := got[0]
			if e.Kind != KindXID || e.Code != 31 || e.Printed != (Printed{"0000:3b:00", "7", "python3"}) || e.Text != "Ch 00000008" || e.PID != gpu.Some(7) {
				t.Errorf("%q: %+v", tt.line, e)
			}
			if e.Stamp != tt.stamp {
				t.Errorf("%q: time %q, want %q", tt.line, e.Stamp, tt.stamp)
			}
		})
	}
}

// What the kernel did not say raises nothing.
func TestForeignLines(t *testing.T) {
	const message = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
	for _, line := range []string{
		"Jan 17 03:22:10 node01 python3[48213]: " + message,
		"Jan 17 03:22:10 node01 python3[48213]: kernel: " + message,
		"Jan 17 03:22:10 node01 root: kernel: " + message,
		"2026-01-17T03:22:10+00:00 node01 logger: " + message,
		"user  :notice: [12345.678901] " + message,
		"daemon:warn  : [12345.678901] " + message,
		"<12>[12345.678901] " + message,
		"<12>1 2026-01-17T03:22:10Z node01 kernel - - - " + message,
		"<4>1 2026-01-17T03:22:10Z node01 python3 48213 - - " + message,
		"12,8812,771234567,-;" + message,
		`{"_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"` + message + `"}`,
		`{"_TRANSPORT":"kernel","SYSLOG_FACILITY":"1","MESSAGE":"` + message + `"}`,
		`{"_TRANSPORT":["kernel","syslog"],"MESSAGE":"` + message + `"}`,
		`{"_TRANSPORT":"stdout","MESSAGE":"` + message + `"}`,
		`{"log":"Jan 17 03:22:10 node01 python3[48213]: ` + message + `\n"}`,
		`{"MESSAGE":"` + message,
		"$ dmesg | grep 'NVRM: Xid'",
		"echo " + message + " >/dev/kmsg",
		`time="2026-01-17T03:22:10Z" level=info msg="` + message + `"`,
		"Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
		"NVRM: Xid (PCI:0000:3b:00",
		"NVRM: Xid (PCI:0000:3b:00): ",
		"NVRM: Xid (PCI:0000:3b:00): 0, x",
		"NVRM: Xid (PCI:0000:3b:00): -79, x",
		"NVRM: Xid (PCI:0000:3b:00): 79x, x",
		"NVRM: Xid (PCI:0000:3b:00): 100000, x",
		"NVRM: Xid: 79",
		"NVRM:Xid (PCI:0000:3b:00): 79, x",
		"nvidia-nvswitch0: SXid (PCI:0000:3b:00.0): , Fatal",
		"nvidia-nvswitch0: using MSI",
		"nvidia-nvswitch: Probing device 0000:06:00.0, Vendor Id = 0x10de",
		"message repeated x times: [" + message + "]",
		"message repeated 0 times: [" + message + "]",
		"message repeated 99999999999999999999 times: [" + message + "]",
		strings.Repeat("kernel: ", 100) + message,
		strings.Repeat(`{"log":`, 50) + message,
		"", "\x00", "{", "{}", "[", "<", "NVRM: ", "NVRM: Xid ", "[]", "kernel: ",
	} {
		if _, got := read(line); len(got) > 0 {
			t.Errorf("%q raises %+v", line, got)
		}
	}
}

// Messages of several lines, with other lines between.
func TestMessagesOfSeveralLines(t *testing.T) {
	for _, tt := range []struct {
		name, log string
		want      []string // line, kind, address
	}{
		{"fallen", "x\n[1.0] NVRM: The NVIDIA GPU 0000:18:00.0\n[1.0] NVRM: (PCI ID: 10de:2901) installed in this system has\n[1.0] NVRM: fallen off the bus and is not responding to commands.\n",
			[]string{"2 fallen 0000:18:00.0"}},
		{"indented", "Jan 17 03:22:10 n kernel: NVRM: The NVIDIA GPU 0000:18:00.0\n                   NVRM: (PCI ID: 10de:2901) installed in this system has\n                   NVRM: fallen off the bus and is not responding to commands.",
			[]string{"1 fallen 0000:18:00.0"}},
		{"foreign lines between", "[1.0] NVRM: The NVIDIA GPU 0000:18:00.0\n[1.0] usb 1-1: new device\n[1.0] NVRM: (PCI ID: 10de:2901) installed in this system has\n[1.0] x\n[1.0] NVRM: fallen off the bus and is not responding to commands.",
			[]string{"1 fallen 0000:18:00.0"}},
		{"an event between keeps the order", "NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: Xid (PCI:0000:3b:00): 31, x\nNVRM: fallen off the bus and is not responding to commands.",
			[]string{"2 xid 0000:3b:00", "3 fallen 0000:18:00.0"}},
		{"two cards", "NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: fallen off the bus and is not responding to commands.\nNVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: fallen off the bus and is not responding to commands.",
			[]string{"1 fallen 0000:18:00.0", "3 fallen 0000:3b:00.0"}},
		{"the end alone", "NVRM: fallen off the bus and is not responding to commands.", []string{"1 fallen "}},
		{"the beginning alone", "NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: (PCI ID: 10de:2901) installed in this system has", nil},
		{"too old a beginning", "NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: a\nNVRM: b\nNVRM: c\nNVRM: d\nNVRM: fallen off the bus and is not responding to commands.", []string{"6 fallen "}},
		{"mismatch", "[1.0] NVRM: API mismatch: the client has the version 515.48.07, but\n      NVRM: this kernel module has the version 510.73.05.  Please\n      NVRM: make sure that this kernel module and all NVIDIA driver\n      NVRM: components have the same version.", []string{"1 mismatch "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			_, events := read(tt.log)
			for _, e := range events {
				got = append(got, fmt.Sprintf("%d %s %s", e.Seq, e.Kind, e.Printed.PCI))
			}
			if strings.Join(got, "; ") != strings.Join(tt.want, "; ") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The driver prints a card's UUID before its first XID.
func TestLogUUID(t *testing.T) {
	const uuid = "GPU-00000000-0000-0000-0000-000000000001"
	_, events := read("[1.0] NVRM: Xid (PCI:0000:3b:00): 31, x\n[1.0] NVRM: GPU at PCI:0000:3b:00: " + uuid + "\n[1.0] NVRM: GPU at PCI:0000:9b:00: GPU-short\n" +
		"[1.0] NVRM: Xid (PCI:0000:3b:00): 31, x\n[1.0] NVRM: Xid (PCI:0000:9b:00): 31, x\n[1.0] nvidia-nvswitch0: SXid (PCI:0000:3b:00.0): 12028, Non-fatal, x")
	var got []string
	for _, e := range events {
		got = append(got, e.UUID)
	}
	if want := []string{"", uuid, "", ""}; strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLogWindow(t *testing.T) {
	l, events := read("NVRM: Xid (PCI:0000:3b:00): 79, x\nNVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05\nNVRM: Xid (PCI:0000:3b:00): 31, x")
	var plain []Event
	for _, e := range events {
		plain = append(plain, e.Event)
	}
	if live := l.Window().Live(plain); len(live) != 1 || live[0].Code != 31 || l.Lines() != 3 {
		t.Errorf("live after the driver was loaded again: %+v of %d lines", live, l.Lines())
	}
}
