// Package gpuhooks holds no code: this test keeps the house in order. The rules
// are those of docs/architecture.md.
package gpuhooks

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// order lists the packages of internal/ as docs/architecture.md does: a package
// imports only packages that stand before it.
var order = []string{
	"gpu", "host", "xid", "slurmconf", "slurm", "slurmctl", "config", "driver",
	"baseline", "check", "verdict", "node", "drain", "runs", "record", "line",
	"spool", "deliver", "store", "report", "cli", "sampler", "nvml", "cuda", "sim", "lab",
}

// probeOnly are the packages that link the driver: only gpu-probe may.
var probeOnly = []string{"sampler", "nvml", "cuda"}

// pure packages decide and do no I/O of their own.
var pure = map[string]string{
	"gpu": "plain data", "xid": "decisions about kernel-log lines", "check": "a check judges what was read",
	"verdict": "policy", "record": "a record is a function of readings", "report": "a report is a function of records",
}

// pkg is one line of `go list`.
type pkg struct {
	path    string
	imports []string
}

// list asks the go command for the packages with cgo on or off.
func list(t *testing.T, cgo string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED="+cgo)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pkgs = append(pkgs, pkg{f[0], f[1:]})
	}
	return pkgs
}

// inner returns the name of a package of internal/, with what lies below it
// counted to it (internal/sim/x is sim), or "".
func inner(path string) string {
	rest, ok := strings.CutPrefix(path, "gpuhooks/internal/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func TestImportsPointUp(t *testing.T) {
	for _, p := range list(t, "1") {
		me := inner(p.path)
		at := slices.Index(order, me)
		if me != "" && at < 0 {
			t.Errorf("%s is not in the house's list", p.path)
		}
		for _, imp := range p.imports {
			it := inner(imp)
			if it == "" || it == me {
				continue
			}
			if me != "" && slices.Index(order, it) > at {
				t.Errorf("%s imports %s, which stands below it", p.path, imp)
			}
			if me == "" && p.path != "gpuhooks/probe" && slices.Contains(probeOnly, it) {
				t.Errorf("%s imports %s, which is gpu-probe's alone", p.path, imp)
			}
			if me == "" && (it == "sim" || it == "lab") {
				t.Errorf("%s imports %s, which is not shipped", p.path, imp)
			}
		}
	}
}

func TestOneImporterPerLibrary(t *testing.T) {
	sole := map[string]string{
		"github.com/NVIDIA/go-nvml/pkg/nvml":                  "gpuhooks/internal/nvml",
		"github.com/influxdata/line-protocol/v2/lineprotocol": "gpuhooks/internal/line",
		"github.com/BurntSushi/toml":                          "gpuhooks/internal/config gpuhooks/internal/xid",
	}
	for _, p := range list(t, "1") {
		for _, imp := range p.imports {
			if who, ok := sole[imp]; ok && !slices.Contains(strings.Fields(who), p.path) {
				t.Errorf("%s imports %s; only %s may", p.path, imp, who)
			}
			if me := inner(p.path); pure[me] != "" && (imp == "os/exec" || imp == "net" || imp == "net/http" || imp == "os") {
				t.Errorf("%s imports %s, but it is pure: %s", p.path, imp, pure[me])
			}
		}
	}
}

func TestHooksStaySmall(t *testing.T) {
	for _, main := range []string{"prolog", "epilog", "healthcheck"} {
		cmd := exec.Command("go", "list", "-deps", "./"+main)
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list -deps ./%s: %v", main, err)
		}
		for _, dep := range strings.Fields(string(out)) {
			if dep == "net/http" || dep == "html/template" || inner(dep) == "deliver" || inner(dep) == "store" {
				t.Errorf("gpu-%s links %s, which hooks do not need", main, dep)
			}
		}
	}
}
