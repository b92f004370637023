package xid

import (
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
)

func yes(b bool) gpu.Opt[bool] { return gpu.Some(b) }

func xidEvent(code int) Event { return Event{Kind: KindXID, Code: code, PCI: "00000000:3B:00.0"} }

func TestJudge(t *testing.T) {
	cat := catalogue(t)
	with := func(code int, change func(*Event)) Event {
		e := xidEvent(code)
		change(&e)
		return e
	}
	recovery := func(n int) Event { return with(154, func(e *Event) { e.To = gpu.Some(n) }) }
	link := func(code int, r LinkReport) Event { return with(code, func(e *Event) { e.Link = &r }) }
	for _, tt := range []struct {
		name     string
		event    Event
		action   Action
		severity Severity
	}{
		{"page fault of a program", xidEvent(31), ActionRestartApp, Info},
		{"row remapped", xidEvent(63), ActionIgnore, Info},
		{"row not remapped", xidEvent(64), ActionReset, Fail},
		{"double-bit error", xidEvent(48), ActionXID48, Fail},
		{"lost", xidEvent(79), ActionReboot, Fail},
		{"lost, without a number", Event{Kind: KindFallen}, ActionReboot, Fail},
		{"teardown", xidEvent(45), ActionXID45, Info},
		{"teardown after another", with(45, func(e *Event) { e.CausedBy = 149 }), ActionIgnore, Info},
		{"contained", with(94, func(e *Event) { e.Reset, e.DrainReset = yes(false), yes(false) }), ActionRestartApp, Info},
		{"contained, echo of a channel", xidEvent(94), ActionRestartApp, Info},
		{"contained, reset wanted", with(94, func(e *Event) { e.Reset, e.DrainReset = yes(true), yes(false) }), ActionReset, Fail},
		{"contained, drain wanted", with(94, func(e *Event) { e.Reset, e.DrainReset = yes(false), yes(true) }), ActionDrainReset, Fail},
		{"uncontained", with(95, func(e *Event) { e.Reset, e.DrainReset = yes(true), yes(false) }), ActionReset, Fail},
		{"uncontained, denied by its line", with(95, func(e *Event) { e.Reset, e.DrainReset = yes(false), yes(false) }), ActionReset, Fail},
		{"recommends nothing", recovery(0), ActionIgnore, Info},
		{"recommends a reset", recovery(1), ActionReset, Fail},
		{"recommends a reboot", recovery(2), ActionReboot, Fail},
		{"recommends draining peers", recovery(3), ActionDrainP2P, Fail},
		{"recommends drain and reset", recovery(4), ActionDrainReset, Fail},
		{"recommends something about IMEX", recovery(5), ActionRecoverIMEX, Warn},
		{"recommends what we do not know", recovery(9), ActionUnspecified, Warn},
		{"154 without its number", xidEvent(154), ActionXID154, Warn},
		{"old NVLink error", xidEvent(74), ActionNVLink, Warn},
		{"NVLink5 fatal", link(149, LinkReport{Unit: "NETIR", Info: 0x000fe406, Words: true}), ActionReset, Fail},
		{"NVLink5 harmless", link(144, LinkReport{Unit: "SAW_MVB", Info: 1, Status: 8, Words: true}), ActionIgnore, Info},
		{"NVLink5, a 154 decides", link(145, LinkReport{Unit: "RLW_SRC_TRACK", Info: 0x040988e2, Status: 8, Words: true}), ActionFollowXID154, Warn},
		{"NVLink5 without words", link(149, LinkReport{Unit: "NETIR"}), ActionNVLink5, Warn},
		{"NVLink5, unit and word disagree", link(149, LinkReport{Unit: "TREX", Info: 0x000fe406, Words: true}), ActionNVLink5, Warn},
		{"legacy", xidEvent(56), ActionContact, Warn},
		{"encoder, perhaps the job's fault", xidEvent(142), ActionContact, Warn},
		{"newer than the catalogue", xidEvent(177), ActionUnspecified, Warn},
		{"no action given", xidEvent(167), ActionUnspecified, Warn},
		{"power lead", xidEvent(54), ActionMechanicals, Fail},
		{"switch, fatal", Event{Kind: KindSXID, Code: 20034, Switch: SwitchFatal}, ActionReset, Fail},
		{"switch, not fatal", Event{Kind: KindSXID, Code: 12028, Switch: SwitchNonFatal}, ActionIgnore, Info},
		{"switch, data line", Event{Kind: KindSXID, Code: 20034, Switch: SwitchData}, ActionNone, Info},
		{"switch, firmware stopped", Event{Kind: KindSXID, Code: 26006, Switch: SwitchUnstated}, ActionContact, Fail},
		{"switch, severity unknown", Event{Kind: KindSXID, Code: 20034, Switch: SwitchUnstated}, ActionUnspecified, Warn},
		{"GSP stopped", Event{Kind: KindGSP, Text: "GSP task watchdog timeout @ pc:0x1"}, ActionReset, Fail},
		{"GSP noise", Event{Kind: KindGSP, Text: "_kgspLogXid119: GSP Timeout"}, ActionNone, Warn},
		{"mismatch, which any job can cause", Event{Kind: KindMismatch}, ActionNone, Warn},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := Judge(tt.event, cat)
			if j.Action != tt.action || j.Severity != tt.severity {
				t.Errorf("got %s, %s; want %s, %s", j.Action, j.Severity, tt.action, tt.severity)
			}
			if s := Explain(tt.event, cat); s == "" || strings.HasSuffix(s, "; ") {
				t.Errorf("explained as %q", s)
			}
		})
	}
}

func TestJudgeAll(t *testing.T) {
	cat := catalogue(t)
	other := xidEvent(63)
	other.PCI = "00000000:9B:00.0"
	reset := xidEvent(154)
	reset.To = gpu.Some(1)
	follow := xidEvent(145)
	follow.Link = &LinkReport{Unit: "RLW_SRC_TRACK", Info: 0x040988e2, Status: 8, Words: true}
	for _, tt := range []struct {
		name   string
		events []Event
		want   Action // of the first
	}{
		{"48 alone", []Event{xidEvent(48)}, ActionReset},
		{"48 and a remap", []Event{xidEvent(48), xidEvent(63)}, ActionDrainReset},
		{"48 and a remap elsewhere", []Event{xidEvent(48), other}, ActionReset},
		{"45", []Event{xidEvent(45), xidEvent(31)}, ActionIgnore},
		{"145 with a 154", []Event{follow, reset}, ActionReset},
		{"145 without", []Event{follow}, ActionFollowXID154},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := JudgeAll(tt.events, cat)[0].Action; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if j := JudgeAll([]Event{follow, reset}, cat)[0]; j.Severity != Fail {
		t.Errorf("a 145 for which the driver wants a reset is %s", j.Severity)
	}
}

func TestExplain(t *testing.T) {
	cat := catalogue(t)
	none := xidEvent(154)
	none.To = gpu.Some(0)
	caused := xidEvent(45)
	caused.CausedBy = 149
	for want, e := range map[string]Event{
		"XID 94: uncorrectable memory error kept inside one process; restart the application":                 xidEvent(94),
		"XID 154: driver changed its recommended recovery action; it recommends nothing any more":             none,
		"XID 45: channel torn down because of an earlier fault or an exit (caused by XID 149); nothing to do": caused,
		"XID 177: not in NVIDIA's catalogue; NVIDIA names no action":                                          xidEvent(177),
		"SXid 20034 (fatal): NVSwitch error; reset the GPU":                                                   {Kind: KindSXID, Code: 20034, Switch: SwitchFatal},
		"GPU has fallen off the bus (as XID 79): GPU unreachable over PCIe; reboot the node":                  {Kind: KindFallen},
		"a client's driver library does not fit the kernel module; nothing to do":                             {Kind: KindMismatch},
	} {
		if got := Explain(e, cat); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
