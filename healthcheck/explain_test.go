package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
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
		{[]string{"79"}, 0, []string{"XID 79: GPU unreachable over PCIe; reboot the node\n", "NVIDIA's action  REBOOT", "fails the check gpu-lost", "prolog drain, epilog drain, healthcheck drain\n", "source           built-in", "  1. Drain the node"}},
		{[]string{"sxid", "20034"}, 0, []string{"SXid 20034: ", "Non-fatal is information", "fails the check xid"}},
		{[]string{"SXID26006"}, 0, []string{"SXid 26006: NVSwitch firmware (SOE) stopped; contact support"}},
		{[]string{"xid", "154"}, 0, []string{"prolog warn, epilog warn, healthcheck warn"}},
		{[]string{"xid", "95", "--json"}, 0, []string{`"schema": "gpuhooks.explain/1"`, `"action": "RESET_GPU"`, `"source": "built-in"`, `"prolog": "drain"`}},
		{[]string{"persistence", "--json"}, 2, []string{"--json is for an XID"}},
		{[]string{"xid", "abc"}, 2, []string{`"abc" is not a number of the catalogue`}},
		{[]string{"xid", "0"}, 2, []string{`"0" is not a number`}},
		{[]string{"sxid"}, 2, []string{`"" is not a number`}},
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

// A site's own catalogue is named as the source; a broken one is an error here,
// with file and line.
func TestExplainSite(t *testing.T) {
	n := newNode(t)
	n.mode = "observe"
	n.configure()
	path := n.path("xid.toml")
	n.write("own.toml", strings.Replace(n.read("gpuhooks.toml"), "[paths]\n", fmt.Sprintf("[paths]\nxid = %q\n", path), 1)+"[checks.xid]\nprolog = \"ignore\"\n", 0o644)
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		code := cli.Run(cli.Env{
			Program: "gpu-healthcheck", Args: append([]string{"--config", n.path("own.toml")}, args...),
			Stdout: &out, Stderr: &out, Now: time.Now,
		}, newCommand)
		return code, out.String()
	}
	n.write("xid.toml", "# ours\n[xid.63]\nseverity = \"fail\"\n", 0o644)
	code, out := run("explain", "63")
	if code != 0 || !strings.Contains(out, "source           "+path) || !strings.Contains(out, "prolog ignore, epilog drain, healthcheck drain (mode observe: ") {
		t.Errorf("status %d\n%s", code, out)
	}
	n.write("xid.toml", "# ours\n[xid.63]\nseverty = \"fail\"\n", 0o644)
	want := path + ": line 3: unknown key \"xid.63.severty\""
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"explain", "63"}, 2}, {[]string{"xid", "--file", "/dev/null"}, 2}, {[]string{"doctor"}, 1},
	} {
		if code, out := run(tt.args...); code != tt.code || !strings.Contains(out, want) {
			t.Errorf("%v: status %d\n%s", tt.args, code, out)
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
