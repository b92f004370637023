package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

// xid95 is a card that the log says is broken and that answers well again.
func (n *testNode) xid95() {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	n.answer[2].Kernel.LastSeq = 120
	n.answer[2].Kernel.Events = []xid.Event{{Kind: xid.KindXID, Code: 95, PCI: "00000000:20:00.0", Seq: 110, Last: 110, Count: 1, First: at, Until: at}}
}

func TestAckGivesTheNodeBack(t *testing.T) {
	n := newNode(t)
	n.run()
	n.xid95()
	n.run()
	if n.read("reason") != "[HC] XID95 gpu=1 GPU-1" {
		t.Fatalf("reason %q", n.read("reason"))
	}
	n.environ = []string{"SUDO_USER=ada"}
	code, out, errs := n.run("ack", "--reason", "reset, ticket 4711")
	if code != 0 || n.read("reason") != "" || !strings.Contains(out, "GPU-1): good at tier 1: acknowledged") ||
		!strings.Contains(out, "undrained: [HC] XID95") || !strings.Contains(out, "tier 2 is not there yet") {
		t.Errorf("status %d, reason %q, %s%s", code, n.read("reason"), out, errs)
	}
	n.environ = []string{"SLURMD_NODENAME=n1"}
	if code, _, errs := n.run(); code != 0 {
		t.Errorf("the XID counts again: %s", errs)
	}
	_, out, _ = n.run("history", "--gpu", "1")
	for _, want := range []string{"drain: XID95", "ack by ada: reset, ticket 4711"} {
		if !strings.Contains(out, want) {
			t.Errorf("history lacks %q:\n%s", want, out)
		}
	}
}

func TestAckRefuses(t *testing.T) {
	n := newNode(t)
	n.lose()
	n.run()
	n.environ = nil
	code, out, _ := n.run("ack", "--json")
	var r acked
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if code != 1 || r.Undrained || len(r.Failing) == 0 || n.read("reason") == "" {
		t.Errorf("status %d, %s", code, out)
	}
	if len(r.Acknowledged) != 1 || r.Acknowledged[0].UUID != "GPU-0" {
		t.Errorf("acknowledged %+v", r.Acknowledged)
	}
	// The other card is good, but the node does not come back for it.
	if code, out, _ := n.run("ack", "--gpu", "0"); code != 0 || n.read("reason") == "" || !strings.Contains(out, "not asked: the node is not well") {
		t.Errorf("status %d, %s", code, out)
	}
	if code, _, errs := n.run("ack", "--gpu", "7"); code != 2 || !strings.Contains(errs, "no such GPU") {
		t.Errorf("status %d, %s", code, errs)
	}
}

func TestAckAndSlurm(t *testing.T) {
	tests := []struct {
		name, reason, says string
		args               []string
		undrained          bool
		code               int
	}{
		{name: "a foreign reason stays", reason: "fan broken", says: "the reason is not ours: fan broken"},
		{name: "an edited one, too", reason: "[HC] XID95 gpu=1 GPU-1, wait for parts", says: "is not ours"},
		{name: "not to be asked", reason: "[HC] XID95 gpu=1 GPU-1", says: "not asked", args: []string{"--no-undrain"}},
		{name: "given back already", reason: "", says: "not drained", undrained: true},
		{name: "no answer", reason: "silent", says: "scontrol show node", code: 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.run()
			n.xid95()
			n.run()
			if n.write("reason", tt.reason, 0o644); tt.reason == "silent" {
				n.write("scontrol", "#!/bin/sh\nexit 1\n", 0o755)
			}
			n.environ = nil
			code, out, errs := n.run(append([]string{"ack"}, tt.args...)...)
			if code != tt.code || !strings.Contains(out, tt.says) || (n.read("reason") == "") != tt.undrained {
				t.Errorf("status %d, reason %q, %s%s", code, n.read("reason"), out, errs)
			}
		})
	}
}

// A card of an older version's drain, or whose drain was forgotten.
func TestAckOfUnremembered(t *testing.T) {
	n := newNode(t)
	n.write("reason", "[HC] FLUXCAP gpu=1 GPU-1", 0o644)
	if code, out, _ := n.run("ack"); code != 0 || n.read("reason") != "" {
		t.Errorf("status %d, %s", code, out)
	}
}

func TestAckWithoutAnswer(t *testing.T) {
	n := newNode(t)
	n.write("reason", "[HC] LOST gpu=1 GPU-1", 0o644)
	n.answer = n.answer[:1]
	if code, out, _ := n.run("ack"); code != 3 || n.read("reason") == "" || strings.Contains(out, "acknowledged") {
		t.Errorf("status %d, %s", code, out)
	}
}

// Three faults in a month, each after the card had been good, and in two slots.
func TestLemon(t *testing.T) {
	n := newNode(t)
	n.mode = "observe"
	n.now = func() time.Time { return time.Now().Add(-24 * time.Hour) }
	good := healthy
	bad := func() []driver.Line {
		n.answer = healthy()
		n.answer[5].GPU.Health.RecoveryAction = gpu.Some(1)
		return n.answer
	}
	var said string
	for i := range 3 {
		for _, answer := range [][]driver.Line{good(), bad(), bad()} { // twice bad is one fault
			n.answer = answer
			for _, line := range answer {
				if g := line.GPU; g != nil {
					g.Serial = gpu.Some(fmt.Sprintf("165000%d", g.Index))
				}
			}
			if i == 2 {
				answer[5].GPU.PCI = "00000000:90:00.0"
				answer[1].Presence.Proc[1].Address = "00000000:90:00.0"
			}
			_, _, errs := n.run()
			said += errs
			time.Sleep(2 * time.Millisecond)
		}
	}
	if !strings.Contains(said, "fault number 3 in 30 days: replace it") {
		t.Errorf("the hook does not name it: %s", said)
	}
	_, out, _ := n.run("history")
	for _, want := range []string{"1650001", "00000000:20:00.0,00000000:90:00.0", "RESET 3", "lemon, not acknowledged"} {
		if !strings.Contains(out, want) {
			t.Errorf("history lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "1650000") {
		t.Errorf("a good card has a history:\n%s", out)
	}
	var h history
	_, out, _ = n.run("history", "--json")
	if err := json.Unmarshal([]byte(out), &h); err != nil || len(h.Cards) != 1 || h.Cards[0].Episodes != 3 || len(h.Faults) != 3 {
		t.Errorf("%v, %s", err, out)
	}
	if _, out, _ := n.run("history", "--gpu", "1650000"); !strings.Contains(out, "no faults of GPUs are on record") {
		t.Errorf("another card: %s", out)
	}
}
