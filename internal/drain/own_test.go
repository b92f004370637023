package drain

import (
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/node"
	"gpuhooks/internal/slurmctl"
)

func TestClassOf(t *testing.T) {
	for reason, want := range map[string]check.Class{
		"[HC] PERSIST gpu=1 GPU-1":                         check.Config,
		"[HC] persistence gpu=1 GPU-1":                     check.Config, // as earlier versions wrote it
		"[HC] LEFTOVER gpu=1,2 GPU-1 GPU-2; PERSIST gpu=3": check.Dirty,
		"[HC] PERSIST gpu=1 GPU-1; LOST gpu=2":             check.Hardware,
		"[HC] LOST gpu=1":                                  check.Hardware,
		"[HC] XID95 gpu=1":                                 "",
		"[HC] PERSIST gpu=1; and 3 more":                   "",
		"[HC] PERSIST gpu=1; was: fan":                     "",
		"[HC] ":                                            "",
		"[HC]":                                             "",
		"PERSIST gpu=1":                                    "",
		"":                                                 "",
	} {
		if got := ClassOf(reason); got != want {
			t.Errorf("%q: %q, want %q", reason, got, want)
		}
	}
}

func TestRemember(t *testing.T) {
	const ours, edited = "[HC] PERSIST gpu=1 GPU-1", "[HC] PERSIST gpu=1 GPU-1, mine"
	before := now.Add(-time.Hour)
	mine := func() *node.Drained {
		return &node.Drained{Reason: ours, Code: "PERSIST", Class: check.Config, Time: before, Confirmed: before}
	}
	tests := []struct {
		name    string
		old     *node.Drained
		outcome Outcome
		reason  string
		class   check.Class
		want    *node.Drained
	}{
		{"drained", nil, Drained, ours, check.Config, &node.Drained{Reason: ours, Code: "C", Class: check.Config, Time: now, Confirmed: now}},
		{"still drained", mine(), AlreadyOurs, ours, check.Config, &node.Drained{Reason: ours, Code: "PERSIST", Class: check.Config, Time: before, Confirmed: now}},
		{"a card has failed since", mine(), AlreadyOurs, ours, check.Hardware, &node.Drained{Reason: ours, Code: "PERSIST", Class: check.Hardware, Time: before, Confirmed: now}},
		{"edited", mine(), AlreadyOurs, edited, check.Config, &node.Drained{Reason: ours, Code: "PERSIST", Class: check.Config, Time: before, Confirmed: before, Touched: true}},
		{"taken over", mine(), Foreign, "fan", check.Config, &node.Drained{Reason: ours, Code: "PERSIST", Class: check.Config, Time: before, Confirmed: before, Touched: true}},
		{"not remembered", nil, AlreadyOurs, ours, check.Config, &node.Drained{Reason: ours, Code: "PERSIST", Class: check.Config, Time: before, Confirmed: now}},
		{"somebody else's", nil, Foreign, "fan", check.Config, nil},
		{"braked", nil, Braked, "", check.Config, nil},
		{"no answer", mine(), NoAnswer, "", check.Hardware, mine()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := node.Durable{Dir: t.TempDir()}
			if err := d.KeepDrains(node.Drains{Drained: tt.old}); err != nil {
				t.Fatal(err)
			}
			r := Result{Outcome: tt.outcome, Reason: tt.reason, Node: slurmctl.Node{Reason: tt.reason, ReasonTime: gpu.Some(before)}}
			if err := remember(d, r, "C", tt.class, now); err != nil {
				t.Fatal(err)
			}
			got, err := d.Drains()
			if err != nil {
				t.Fatal(err)
			}
			if (got.Drained == nil) != (tt.want == nil) || got.Drained != nil && *got.Drained != *tt.want {
				t.Errorf("got %+v, want %+v", got.Drained, tt.want)
			}
		})
	}
}
