package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gpuhooks/internal/check"
)

func TestExplain(t *testing.T) {
	n := newNode(t)
	n.toml = "[checks.persistence]\nprolog = \"drain\"\nmode = \"observe\"\n"
	tests := []struct {
		args []string
		code int
		want []string
	}{
		{nil, 0, check.Names()},
		{[]string{"persistence"}, 0, []string{"persistence (code PERSIST, tier 1, class config)", "Cure: systemctl", "prolog       drain    (configured)", "epilog       warn     (default)", "mode         observe  (configured for this check)"}},
		{[]string{"LOST"}, 0, []string{"gpu-lost (code LOST"}},
		{[]string{"xid", "95"}, 0, []string{"XID 95: ", "fails the check xid"}},
		{[]string{"XID95"}, 0, []string{"XID 95: "}},
		{[]string{"xid", "31"}, 0, []string{"nothing: it stands in the job's record"}},
		{[]string{"xid"}, 0, []string{"xid (code XID"}},
		{[]string{"xid", "abc"}, 2, []string{`"xid abc" is not the number of an XID`}},
		{[]string{"xid", "999"}, 2, []string{"XID 999 is not in the catalogue"}},
		{[]string{"gpu-lots"}, 2, []string{`there is no check "gpu-lots"`, "hint: gpu-healthcheck explain lists the checks"}},
	}
	for _, tt := range tests {
		code, out, errs := n.person(append([]string{"explain"}, tt.args...)...)
		if code != tt.code {
			t.Errorf("%v: status %d, want %d", tt.args, code, tt.code)
		}
		for _, w := range tt.want {
			if !strings.Contains(out+errs, w) {
				t.Errorf("%v: no %q in\n%s%s", tt.args, w, out, errs)
			}
		}
	}
}

func TestDoctor(t *testing.T) {
	n := newNode(t)
	if code, out, _ := n.person("doctor"); code != 0 || !strings.HasPrefix(out, "n1: "+n.path("slurm.conf")+": 0 errors, ") {
		t.Errorf("status %d\n%s", code, out)
	}
	n.write("slurm.conf", n.read("slurm.conf")+"Prolog=/nonexistent/prolog.sh\n", 0o644)
	code, out, _ := n.person("doctor")
	if code != 1 || !strings.Contains(out, "\nerror: ") || !strings.Contains(out, "  cause: ") || !strings.Contains(out, "  cure:  ") {
		t.Errorf("status %d\n%s", code, out)
	}
	code, out, _ = n.person("doctor", "--json")
	var d struct {
		Schema, Node, Conf string
		Advice             []struct{ Severity, Cure string }
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 1 || d.Schema != "gpuhooks.doctor/1" || d.Node != "n1" || len(d.Advice) == 0 {
		t.Errorf("status %d, %v\n%s", code, err, out)
	}
}
