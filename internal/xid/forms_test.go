package xid

import (
	"fmt"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
)

// word makes an IntrInfo that fits a pattern: its other bits all set or all clear.
func (p bitPattern) word(rest uint32) uint32 { return p.want | rest&^p.mask }

// Every rule of NVIDIA's table for XID 144-150 through a whole line, in the bit
// layouts of drivers before R575 and from it on, whatever the other bits are.
func TestEveryNVLink5Rule(t *testing.T) {
	cat := catalogue(t)
	rules, err := loadLinkRules()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rules {
		for _, unit := range r.units {
			for layout, p := range r.info {
				for _, rest := range []uint32{0, ^uint32(0)} {
					status := append([]uint32{}, r.status...)
					if len(status) == 0 {
						status = []uint32{0, 0x40}
					}
					for _, s := range status {
						line := fmt.Sprintf("NVRM: Xid (PCI:0019:01:00): %d, %s Nonfatal XC1 i0 Link 12 (0x%08x 0x%08x 0x00000000 0x00000000 0x00000000 0x00000000)", r.xid, unit, p.word(rest), s)
						e, ok := parseLine(line)
						if got := Judge(e, cat).Action; !ok || got != r.action {
							t.Errorf("rule %d, layout %d: %q: %s, want %s", i+1, layout, line, got, r.action)
						}
					}
				}
			}
		}
	}
}

// The words of XID 154 of all drivers: the number after "to" or "->" counts.
func TestRecoveryActionForms(t *testing.T) {
	cat := catalogue(t)
	for _, tt := range []struct {
		text     string
		from, to int
		want     Action
	}{
		{"GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", 0, 1, ActionReset},
		{"GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", 0, 2, ActionReboot},
		{"GPU recovery action changed from 0x1 (GPU Reset Required) to 0x3 (Drain P2P)", 1, 3, ActionDrainP2P},
		{"GPU recovery action changed from 0x3 (Drain P2P) to 0x4 (Drain and Reset)", 3, 4, ActionDrainReset},
		{"GPU recovery action changed from 0x0 (None) to 0x5 (Recover IMEX Domain)", 0, 5, ActionRecoverIMEX},
		{"GPU recovery action changed from 0x4 (Drain and Reset) to 0x0 (None)", 4, 0, ActionIgnore},
		{"GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)", 0, 1, ActionReset},
		{"GPU recovery action changed from 0x1 (PF FLR) to 0x2 (OS Reboot)", 1, 2, ActionReboot},
		{"recovery action 0x0 -> 0x2 (OS Reboot)", 0, 2, ActionReboot},
		{"recovery action 0x2 -> 0x0 (None)   <- the A6000", 2, 0, ActionIgnore},
		{"GPU recovery action changed from 0x0 (None) to 0x9 (Something New)", 0, 9, ActionUnspecified},
		{"GPU recovery action changed from 0x0 (to 0x1) to 0x2 (OS Reboot)", 0, 2, ActionReboot},
		{"GPU recovery action changed from 0x0 (None) to ", -1, -1, ActionXID154},
		{"(", -1, -1, ActionXID154},
		{"", -1, -1, ActionXID154},
	} {
		for _, who := range []string{"", "pid=7, name=to 0x2 (a), ", "pid='<unknown>', name=<unknown>, "} {
			if who != "" && !strings.Contains(tt.text, "recovery") {
				continue
			}
			line := "NVRM: Xid (PCI:0000:55:00): 154, " + who + tt.text
			e, ok := parseLine(line)
			if !ok || Judge(e, cat).Action != tt.want {
				t.Errorf("%q: %s, want %s", line, Judge(e, cat).Action, tt.want)
			}
			if to := e.To.Or(-1); to != tt.to || tt.to >= 0 && e.From.Or(-1) != tt.from && !strings.Contains(tt.text, "(to ") {
				t.Errorf("%q: from %v to %v, want %d to %d", line, e.From.Or(-1), to, tt.from, tt.to)
			}
		}
	}
}

// Addresses, instances, processes and names in the forms that drivers print.
func TestXIDForms(t *testing.T) {
	const driver = "Ch 00000008"
	for _, tt := range []struct {
		line    string
		pci     string
		gi, ci  int // -1: none
		pid     string
		process string
		text    string
	}{
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=a, Ch 00000008", "0000:3b:00", -1, -1, "7", "a", driver},
		{"NVRM: Xid (PCI:0000:3b:00.0): 45, pid=7, name=a, Ch 00000008", "0000:3b:00.0", -1, -1, "7", "a", driver},
		{"NVRM: Xid (PCI:00000000:3B:00.0): 45, pid=7, name=a, Ch 00000008", "00000000:3B:00.0", -1, -1, "7", "a", driver},
		{"NVRM: Xid (0000:3b:00): 45, Ch 00000008", "0000:3b:00", -1, -1, "", "", driver},
		{"NVRM: Xid (3b:00): 45, Ch 00000008", "3b:00", -1, -1, "", "", driver},
		{"NVRM: Xid (PCI:3b:00.0): 45, Ch 00000008", "3b:00.0", -1, -1, "", "", driver},
		{"NVRM: Xid (PCI:0019:01:00): 45, Ch 00000008", "0019:01:00", -1, -1, "", "", driver},
		{"NVRM: Xid (PCI:0000:c1:00 GPU-I:01 GPU-CI:00): 45, Ch 00000008", "0000:c1:00", 1, 0, "", "", driver},
		{"NVRM: Xid (PCI:0000:c1:00 GPU-I:13): 45, pid=7, name=a, Ch 00000008", "0000:c1:00", 13, -1, "7", "a", driver},
		{"NVRM: Xid (PCI:0000:c1:00, GPU-I:09, GPU-CI:01): 45, Ch 00000008", "0000:c1:00", 9, 1, "", "", driver},
		{"NVRM: Xid (PCI:...): 45, Ch 00000008", "", -1, -1, "", "", driver},
		{"NVRM: Xid (PCI:zzzz:3b:00): 45, Ch 00000008", "", -1, -1, "", "", driver},
		{"NVRM: Xid 45: Ch 00000008", "", -1, -1, "", "", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45", "0000:3b:00", -1, -1, "", "", ""},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7", "0000:3b:00", -1, -1, "7", "", ""},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, Ch 00000008", "0000:3b:00", -1, -1, "7", "", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=, Ch 00000008", "0000:3b:00", -1, -1, "7", "", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid='<unknown>', name=<unknown>, Ch 00000008", "0000:3b:00", -1, -1, "<unknown>", "<unknown>", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=<unknown>, name=<unknown>, Ch 00000008", "0000:3b:00", -1, -1, "<unknown>", "<unknown>", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid='<n/a>', name=<n/a>, Ch 00000008", "0000:3b:00", -1, -1, "<n/a>", "<n/a>", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=99999999999999999999, name=a, Ch 00000008", "0000:3b:00", -1, -1, "99999999999999999999", "a", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=my app 2, Ch 00000008", "0000:3b:00", -1, -1, "7", "my app 2", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=a, b, c, Ch 00000008", "0000:3b:00", -1, -1, "7", "a, b, c", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=nvc:[driver], Ch 00000008", "0000:3b:00", -1, -1, "7", "nvc:[driver]", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=(x): 79, y, Ch 00000008", "0000:3b:00", -1, -1, "7", "(x): 79, y", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=a=b;c|d\"e'f\\g, Ch 00000008", "0000:3b:00", -1, -1, "7", "a=b;c|d\"e'f\\g", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=ünï, Ch 00000008", "0000:3b:00", -1, -1, "7", "ünï", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=a\xff\xfeb\x07, Ch 00000008", "0000:3b:00", -1, -1, "7", "a?b", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=a\u202eb\u2028c, Ch 00000008", "0000:3b:00", -1, -1, "7", "a?b?c", driver},
		{"NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=a\u009b31mb, Ch 00000008", "0000:3b:00", -1, -1, "7", "a31mb", driver},
	} {
		_, got := read(tt.line)
		if len(got) != 1 {
			t.Errorf("%q raises %d events", tt.line, len(got))
			continue
		}
		e := got[0]
		if e.Printed != (Printed{tt.pci, tt.pid, tt.process}) || e.GI.Or(-1) != tt.gi || e.CI.Or(-1) != tt.ci || e.Text != tt.text || e.Code != 45 {
			t.Errorf("%q: printed %+v, instance %v/%v, text %q", tt.line, e.Printed, e.GI, e.CI, e.Text)
		}
	}
}

// 94 and 95 say by themselves whether a reset is needed.
func TestResetWords(t *testing.T) {
	yes, no, unset := gpu.Some(true), gpu.Some(false), gpu.Opt[bool]{}
	for text, want := range map[string][2]gpu.Opt[bool]{
		"Contained: SM (0x1). RST: No, D-RST: No":                           {no, no},
		"Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No":               {yes, no},
		"Uncontained: FBHUB. RST: Yes, D-RST: Yes":                          {yes, yes},
		"Contained: CE User Channel (0x9). RST: No, D-RST: Yes.":            {no, yes},
		"pid=7, name=RST: Yes, Contained: SM (0x1). RST: No, D-RST: No":     {no, no},
		"pid=7, name=a, D-RST: Yes, Contained: SM. RST: No, D-RST: No":      {no, no},
		"Contained: SM (0x1)":                                               {unset, unset},
		"Contained: SM (0x1). RST: Maybe, D-RST: Perhaps":                   {unset, unset},
		"Contained: SM (0x1). RST: Yes, D-":                                 {unset, unset},
		"pid=7, name=python3, channel 0x00000002":                           {unset, unset},
		"pid=7, name=a, RST: Yes, D-RST: Yes, channel 0x00000002":           {unset, unset},
		"pid=7, name=a, Ch 00000001, RST: Yes, D-RST: Yes":                  {yes, yes},
		"pid=7, name=RST: Yes, D-RST: Yes":                                  {unset, unset},
		"pid='<unknown>', name=<unknown>, Contained: X. RST: No, D-RST: No": {no, no},
	} {
		e, ok := parseLine("NVRM: Xid (PCI:0000:3b:00): 94, " + text)
		if !ok || e.Reset != want[0] || e.DrainReset != want[1] {
			t.Errorf("%q: %v, reset %v, drain %v", text, ok, e.Reset, e.DrainReset)
		}
	}
}

// What the driver says of a GPU without a number.
func TestMessagesWithoutANumber(t *testing.T) {
	for _, tt := range []struct {
		line string
		kind Kind // "" is none
		pci  string
		code int // as the catalogue knows it
	}{
		{"NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.", KindFallen, "0000:91:00.0", 79},
		{"NVRM: GPU at PCI:0000:01:00: has fallen off the bus.", KindFallen, "0000:01:00", 79},
		{"NVRM: GPU at 0000:01:00.0 has fallen off the bus.", KindFallen, "0000:01:00.0", 79},
		{"NVRM: GPU 18:00.0: GPU has fallen off the bus.", KindFallen, "18:00.0", 79},
		{"NVRM: The NVIDIA GPU 0000:b4:00.0 fallen off the bus and is not responding to commands.", KindFallen, "0000:b4:00.0", 79},
		{"NVRM: The NVIDIA GPU 0000:18:00.0#012NVRM: (PCI ID: 10de:2901) installed in this system has#012NVRM: fallen off the bus and is not responding to commands.", KindFallen, "0000:18:00.0", 79},
		{`NVRM: The NVIDIA GPU 0000:18:00.0\x0aNVRM: (PCI ID: 10de:2901) installed in this system has\x0aNVRM: fallen off the bus and is not responding to commands.`, KindFallen, "0000:18:00.0", 79},
		{"NVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:2901)", "", "", 0},
		{"NVRM: The NVIDIA probe routine failed for 1 device(s).", "", "", 0},
		{"NVRM: _kgspLogXid119: ****** GSP Timeout ******", KindGSP, "", 0},
		{"NVRM: _kgspIsHeartbeatTimedOut: Heartbeat timed out", KindGSP, "", 0},
		{"NVRM: GPU0 _kgspRpcGspEventPmuHalted: Received signal from GSP that PMU has halted.", KindGSP, "", 0},
		{"NVRM: GPU 0000:3b:00.0: RmInitAdapter: Cannot initialize GSP firmware RM", KindGSP, "0000:3b:00.0", 0},
		{"GSP task watchdog timeout @ pc:0x1b3e756, partition:4#0, task:3", KindGSP, "", 120},
		{"GSP task exception: load access fault (cause:0x5) @ pc:0x1", KindGSP, "", 120},
		{"GSP task panic", KindGSP, "", 120},
		{"NVRM: nvAssertFailedNoLog: Assertion failed: GSP @ kernel_gsp.c:1", "", "", 0},
		{"NVRM: API mismatch: the client has the version 535.54.03, but#012NVRM: this kernel module has the version 530.30.02.  Please", KindMismatch, "", 0},
		{"NVRM: GPU at PCI:0000:3b:00: GPU-00000000-0000-0000-0000-000000000001", "", "", 0},
		{"NVRM: GPU Board Serial Number: 1320000000000", "", "", 0},
		{"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05", "", "", 0},
		{"nvidia-nvswitch: Probing device 0000:06:00.0, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000", "", "", 0},
	} {
		_, got := read("[1.0] " + tt.line)
		switch {
		case tt.kind == "" && len(got) == 0:
		case tt.kind == "" || len(got) != 1:
			t.Errorf("%q raises %d events", tt.line, len(got))
		case got[0].Kind != tt.kind || got[0].Printed.PCI != tt.pci || got[0].CatalogueCode() != tt.code:
			t.Errorf("%q: %s %q as %d, want %s %q as %d", tt.line, got[0].Kind, got[0].Printed.PCI, got[0].CatalogueCode(), tt.kind, tt.pci, tt.code)
		}
	}
}

// SXids: the severity as a word, as a number, not at all; data lines.
func TestSXIDForms(t *testing.T) {
	cat := catalogue(t)
	for text, want := range map[string]struct {
		said   SwitchReport
		action Action
	}{
		"Fatal, Link 48 LTSSM Fault Up":                           {SwitchFatal, ActionReset},
		"Non-fatal, Link 62 egress non-posted PRIV error (First)": {SwitchNonFatal, ActionIgnore},
		"Severity 1 Engine instance 48 Sub-engine instance 00":    {SwitchFatal, ActionReset},
		"Severity 0 Engine instance 48 Sub-engine instance 00":    {SwitchNonFatal, ActionIgnore},
		"Severity 2 Engine instance 48":                           {SwitchUnstated, ActionUnspecified},
		"Data {0x10000000, 0x10000000}":                           {SwitchData, ActionNone},
		"Link 48 LTSSM Fault Up":                                  {SwitchUnstated, ActionUnspecified},
		"Link 48 Fatal":                                           {SwitchUnstated, ActionUnspecified},
	} {
		e, ok := parseLine("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, " + text)
		if j := Judge(e, cat); !ok || e.Kind != KindSXID || e.Switch != want.said || j.Action != want.action {
			t.Errorf("%q: %s, %s; want %s, %s", text, e.Switch, j.Action, want.said, want.action)
		}
	}
}
