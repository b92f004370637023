package xid

import (
	"os"
	"strings"
	"testing"
)

// etc/xid.toml changes nothing as installed, and its examples can be used.
func TestExampleOfASite(t *testing.T) {
	b, err := os.ReadFile("../../etc/xid.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range c.Codes() {
		if e, _ := c.Lookup(code); e.Site {
			t.Errorf("XID %d is changed as installed", code)
		}
	}
	var used strings.Builder
	for line := range strings.Lines(string(b)) {
		// An example begins right behind the mark, prose a blank later.
		if rest, ok := strings.CutPrefix(line, "#"); ok && !strings.HasPrefix(rest, " ") {
			line = rest
		}
		used.WriteString(line)
	}
	if c, err = Load([]byte(used.String())); err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{63, 109, 177} {
		if e, ok := c.Lookup(code); !ok || !e.Site {
			t.Errorf("XID %d is not changed by its example", code)
		}
	}
	if j := Judge(Event{Kind: KindXID, Code: 63}, c); j.Severity != Fail || j.Action != ActionDrainReset {
		t.Errorf("63: %+v", j)
	}
	if j := Judge(Event{Kind: KindXID, Code: 177}, c); j.Severity != Fail || j.Action != ActionReset {
		t.Errorf("177: %+v", j)
	}
	if j := Judge(Event{Kind: KindSXID, Code: 12028, Switch: SwitchNonFatal}, c); j.Severity != Warn || j.Action != ActionRestartVM {
		t.Errorf("SXid 12028: %+v", j)
	}
}
