package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestCachedVerdict(t *testing.T) {
	n := newNode(t)
	if code, out, errs := n.person("--cached"); code != 3 || out != "" || !strings.Contains(errs, "no verdict of the last 5m0s") {
		t.Errorf("nothing kept: status %d, %s%s", code, out, errs)
	}
	n.person()
	if code, out, errs := n.person("--cached"); code != 0 || !strings.HasPrefix(out, "n1: pass, 0s ago, tier 1\n") {
		t.Errorf("status %d, %s%s", code, out, errs)
	}
	if code, out, _ := n.person("--cached", "--quiet"); code != 0 || out != "" {
		t.Errorf("quiet: status %d, %s", code, out)
	}
	n.lose()
	if code, _, _ := n.person("--cached"); code != 0 {
		t.Error("it looked")
	}
	n.person("--tier", "0") // is no verdict on the driver
	n.person("--gpu", "0")  // nor on the node
	if code, _, _ := n.person("--cached"); code != 0 {
		t.Error("a lesser look was kept")
	}
	n.person()
	asked := n.read("asked")
	code, out, _ := n.person("--cached", "--json")
	var r cachedResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 || r.Schema != "gpuhooks.cached-verdict/1" || r.Verdict.Code != "LOST" || r.Age <= 0 {
		t.Errorf("%v, status %d, %s", err, code, out)
	}
	if n.read("asked") != asked {
		t.Error("the driver was touched")
	}
	n.later(10 * time.Minute)
	if code, _, _ := n.person("--cached"); code != 3 {
		t.Errorf("too old: status %d", code)
	}
	if code, _, _ := n.person("--cached", "--max-age", "20m"); code != 1 {
		t.Errorf("not too old: status %d", code)
	}
	n.mode = "observe"
	if code, _, _ := n.person("--cached", "--max-age", "20m"); code != 3 {
		t.Errorf("another configuration: status %d", code)
	}
	if code, _, _ := n.person("--cached", "--gpu", "1"); code != 2 {
		t.Errorf("of one GPU: status %d", code)
	}
}
