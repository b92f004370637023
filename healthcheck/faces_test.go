package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

func TestCSV(t *testing.T) {
	n := newNode(t)
	n.lose()
	n.answer[4].GPU.Name = `=CMD "x", y`
	n.answer[4].GPU.Health.Throttle = gpu.Some(gpu.ReasonHWThermal | gpu.ReasonPowerBrake)
	code, out, errs := n.run("--format", "csv") // with slurmd's environment as well: it only looks
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 1 || errs != "" || len(lines) != 3 {
		t.Fatalf("status %d, stderr %q\n%s", code, errs, out)
	}
	head, first, second := strings.Split(lines[0], ","), lines[1], lines[2]
	if head[0] != "node" || head[len(head)-1] != "checks" || strings.Count(second, ",") != len(head)-1 {
		t.Errorf("head %q\nrow %q", lines[0], second)
	}
	for _, want := range []string{`"'=CMD ""x"", y"`, ",1610612736,85899345920,", ",hw-thermal+power-brake,", ",on,"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in %q", want, first)
		}
	}
	if !strings.HasSuffix(second, ",fail,gpu-lost") {
		t.Errorf("the lost card: %q", second)
	}
	if n.calls() != "" {
		t.Error("csv asked Slurm")
	}
}

// People name a card as they have it at hand.
func TestGPUFlag(t *testing.T) {
	for _, name := range []string{"1", "GPU-1", "gpu-1", "00000000:20:00.0", "0000:20:00.0", "20:00.0", "/dev/nvidia1"} {
		n := newNode(t)
		for i := range 2 {
			n.answer[4+i].GPU.UUID = []string{"GPU-0000", "GPU-1000"}[i]
		}
		n.lose()
		name = strings.ReplaceAll(strings.ReplaceAll(name, "GPU-1", "GPU-1000"), "gpu-1", "gpu-1000")
		code, out, errs := n.person("--gpu", name)
		if code != 1 || !strings.Contains(out, "1 x NVIDIA H100") || !strings.Contains(out, "GPU-1000") || strings.Contains(out, "GPU-0000") {
			t.Errorf("%s: status %d, stderr %q\n%s", name, code, errs, out)
		}
	}
	n := newNode(t)
	n.lose()
	if code, out, _ := n.person("--gpu", "0"); code != 0 || strings.Contains(out, "fell off") {
		t.Errorf("the other card: status %d\n%s", code, out)
	}
	for _, name := range []string{"7", "GPU-", "gpu", "", "0000:99:00.0", "/dev/nvidia"} {
		code, _, errs := newNode(t).person("--gpu", name)
		if code != 2 || !strings.Contains(errs, "no such GPU here") || !strings.Contains(errs, "0 (00000000:10:00.0), 1 (00000000:20:00.0)") {
			t.Errorf("%q: status %d, %q", name, code, errs)
		}
	}
}

func TestCheckFlag(t *testing.T) {
	n := newNode(t)
	n.lose()
	n.answer[4].GPU.Health.Persistence = gpu.Some(false)
	code, out, _ := n.person("--check", "persistence")
	if code != 0 || strings.Contains(out, "fell off") || !strings.Contains(out, "persistence mode is off") || !strings.Contains(out, "n1: warn: ") {
		t.Errorf("status %d\n%s", code, out)
	}
	code, out, _ = n.person("--check", "persistence", "--check", "gpu-lost")
	if code != 1 || !strings.Contains(out, "fell off") || !strings.Contains(out, "n1: fail, drain: ") {
		t.Errorf("status %d\n%s", code, out)
	}
	if code, _, errs := n.person("--check", "lost"); code != 2 || !strings.Contains(errs, `--check "lost": there is no such check`) {
		t.Errorf("status %d, %q", code, errs)
	}
}

func TestOptionsThatExclude(t *testing.T) {
	for _, args := range [][]string{
		{"--json", "--quiet"}, {"--format", "csv", "--quiet"}, {"--format", "xml"}, {"--watch", "10ms"}, {"--json", "--watch", "2s"},
	} {
		if code, out, errs := newNode(t).person(args...); code != 2 || out != "" || !strings.Contains(errs, "--format") && !strings.Contains(errs, "--watch") {
			t.Errorf("%v: status %d, %q, %q", args, code, out, errs)
		}
	}
}

// full is a terminal that goes away after some pages.
type full struct{ pages []string }

func (f *full) Write(b []byte) (int, error) {
	if f.pages = append(f.pages, string(b)); len(f.pages) == 2 {
		return 0, errors.New("gone")
	}
	return len(b), nil
}

func TestWatch(t *testing.T) {
	n := newNode(t)
	n.person()
	var terminal full
	env := cli.Env{Program: "gpu-healthcheck", Stdout: &terminal, Stderr: &strings.Builder{}, Now: time.Now}
	err := runLook(env, options{config: n.path("gpuhooks.toml"), tier: 1, format: "text", watch: time.Millisecond})
	if err == nil || len(terminal.pages) != 2 {
		t.Fatalf("%v, %d pages", err, len(terminal.pages))
	}
	for _, p := range terminal.pages {
		if !strings.HasPrefix(p, clearScreen) || !strings.Contains(p, "n1: pass: 2 x NVIDIA H100") {
			t.Errorf("page %q", p)
		}
	}
}

func TestList(t *testing.T) {
	code, out, _ := newNode(t).person("list")
	if code != 0 || !strings.Contains(out, "gpu-lost") {
		t.Errorf("status %d\n%s", code, out)
	}
	code, out, _ = newNode(t).person("list", "--json")
	if code != 0 || !strings.Contains(out, `"schema": "gpuhooks.checks/1"`) {
		t.Errorf("status %d\n%s", code, out)
	}
}

func TestPrintChecks(t *testing.T) {
	var v verdict.Verdict
	for i := range 12 {
		v.Checks = append(v.Checks, verdict.Result{Check: fmt.Sprintf("a-check-%d", i), Outcome: check.Pass})
	}
	v.Checks[3].Outcome, v.Checks[5].Outcome, v.Checks[7].Outcome, v.Checks[9].Outcome = check.Fail, check.Skip, check.Error, check.Warn
	var b strings.Builder
	printChecks(&b, v)
	want := `failed (1): a-check-3
could not look (1): a-check-7
warn (1): a-check-9
passed (8): a-check-0, a-check-1, a-check-2, a-check-4, a-check-6, a-check-8, a-check-10, a-check-11
do not apply (1): a-check-5
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	wrap(&b, "passed: ", strings.Fields(strings.Repeat("some-name ", 15)))
	for line := range strings.Lines(b.String()) {
		if len(line) > pageWidth+1 || strings.HasSuffix(line, " \n") {
			t.Errorf("line %q", line)
		}
	}
}
