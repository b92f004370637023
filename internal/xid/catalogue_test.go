package xid

import (
	"slices"
	"strings"
	"testing"
)

func TestCatalogueIsWhole(t *testing.T) {
	c := catalogue(t)
	if n := len(c.Codes()); n != 176 {
		t.Errorf("%d codes, want 176", n)
	}
	for _, code := range c.Codes() {
		e, ok := c.Lookup(code)
		if !ok || e.Code != code || e.Name == "" || e.Category == "" || !e.Action.known() || e.Severity != "" {
			t.Errorf("%d: %+v", code, e)
		}
	}
	if e, ok := c.Lookup(177); ok {
		t.Errorf("177 is known: %+v", e)
	}
	if e, _ := c.Lookup(79); e.Action != ActionReboot || e.Category != "pcie" {
		t.Errorf("79: %+v", e)
	}
}

func TestSiteCatalogue(t *testing.T) {
	c, err := Load([]byte("[xid.63]\nseverity = \"fail\"\n[xid.200]\nname = \"new\"\naction = \"reboot\"\n[sxid.12028]\naction = \"restart_vm\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if j := Judge(Event{Kind: KindXID, Code: 63}, c); j.Severity != Fail || j.Action != ActionIgnore || !strings.Contains(j.Name, "row remap") {
		t.Errorf("63 with its own severity: %+v", j)
	}
	if j := Judge(Event{Kind: KindXID, Code: 200}, c); j.Severity != Fail || j.Action != ActionReboot || j.Name != "new" {
		t.Errorf("200: %+v", j)
	}
	if j := Judge(Event{Kind: KindSXID, Code: 12028, Switch: SwitchNonFatal}, c); j.Action != ActionRestartVM || j.Severity != Fail {
		t.Errorf("SXid 12028: %+v", j)
	}
	if e, _ := catalogue(t).Lookup(63); e.Severity != "" {
		t.Error("a site's catalogue changed the embedded one")
	}
}

func TestBrokenSiteCatalogue(t *testing.T) {
	for name, tt := range map[string]struct {
		text, want string
		used       bool // what is right of it
	}{
		"syntax":     {"[xid.79]\naction = \"ignore\"\nseverity = fail\n", "line 3", false},
		"type":       {"[xid.79]\naction = 7\n", "line 2", false},
		"key":        {"# ours\n[xid.79]\naction = \"ignore\"\nseverty = \"fail\"\n", `line 4: unknown key "xid.79.severty"`, true},
		"dotted key": {"xid.79.action = \"ignore\"\n\nxid.79.severty = \"fail\"\n", `line 3: unknown key "xid.79.severty"`, true},
		"table":      {"[xid.79]\naction = \"ignore\"\n[sixd.63]\nseverity = \"fail\"\n", `line 3: unknown key "sixd`, true},
		"code":       {"[xid.seventy]\nseverity = \"fail\"\n", "line 1: [xid.seventy]: the name of the table must be a number", false},
		"negative":   {"\n[xid.-1]\nseverity = \"fail\"\n", "line 2: [xid.-1]: the name of the table must be a number", false},
		"action":     {"[xid.79]\nname = \"x\"\naction = \"explode\"\n", `line 3: [xid.79]: action "explode" is none of`, false},
		"severity":   {"[xid.63]\nseverity = \"fail\"\n[sxid.79]\n  severity = \"bad\"\n", `line 4: [sxid.79]: severity "bad" is none of`, false},
		"two faults": {"[xid.63]\nseverity = \"bad\"\n[xid.79]\naction = \"bad\"\n", "line 2: [xid.63]: severity \"bad\" is none of info, warn, fail\nline 4: ", false},
		"not text":   {"\x00\xff", "line 1", false},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Load([]byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			want := ActionReboot
			if tt.used {
				want = ActionIgnore
			}
			if e, ok := c.Lookup(79); !ok || e.Action != want || e.Site != tt.used {
				t.Errorf("79 is %+v, want %s", e, want)
			}
		})
	}
}

// decode does not ask for the driver's version. It need not, as long as no word
// fits rules of one unit in both bit layouts with different results.
func TestLinkRulesNeedNoDriverVersion(t *testing.T) {
	rules, err := loadLinkRules()
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) != 95 {
		t.Errorf("%d rules, want 95", len(rules))
	}
	for i, a := range rules {
		for _, b := range rules[i+1:] {
			sameUnit := slices.ContainsFunc(a.units, func(u string) bool { return slices.Contains(b.units, u) })
			sameStatus := len(a.status) == 0 || len(b.status) == 0 || slices.ContainsFunc(a.status, func(s uint32) bool { return slices.Contains(b.status, s) })
			if a.xid != b.xid || !sameUnit || !sameStatus || a.action == b.action {
				continue
			}
			for _, p := range a.info {
				for _, q := range b.info {
					if (p.want^q.want)&p.mask&q.mask == 0 {
						t.Errorf("a word fits %+v and %+v", a, b)
					}
				}
			}
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load(nil); err != nil {
			b.Fatal(err)
		}
	}
}
