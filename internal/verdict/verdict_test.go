package verdict

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

func id(i int) *gpu.Identity {
	return &gpu.Identity{Index: i, Minor: gpu.Some(i), UUID: fmt.Sprintf("GPU-%d", i), PCI: fmt.Sprintf("00000000:%02d:00.0", i)}
}

// finds is a check that finds these things.
func finds(name, code string, f ...check.Finding) check.Check {
	return check.Check{
		Name: name, Code: code, Class: check.Hardware, Default: config.PolicyDrain,
		Run: func(check.Input) []check.Finding { return slices.Clone(f) },
	}
}

func finding(o check.Outcome, i int, text string) check.Finding {
	f := check.Finding{Outcome: o, Text: text}
	if i >= 0 {
		f.GPU = id(i)
	}
	return f
}

func enforce(checks map[string]config.Check) config.Config {
	c := config.Default()
	c.Mode, c.Checks = config.Enforce, checks
	return c
}

func TestPolicy(t *testing.T) {
	fails := finds("a", "A", finding(check.Fail, 1, "broken"))
	warns := fails
	warns.Default = config.PolicyWarn
	blind := finds("a", "A", finding(check.Error, 1, "not read"))
	type checks = map[string]config.Check
	tests := []struct {
		name    string
		check   check.Check
		hook    Hook
		cfg     config.Config
		outcome check.Outcome
		action  Action
	}{
		{"a failure drains", fails, Prolog, enforce(nil), check.Fail, Drain},
		{"observing", fails, Prolog, config.Default(), check.Fail, WouldDrain},
		{"this check observes", fails, Prolog, enforce(checks{"a": {Mode: config.Observe}}), check.Fail, WouldDrain},
		{"only this check enforces", fails, Prolog, config.Config{Mode: config.Observe, Checks: checks{"a": {Mode: config.Enforce}}}, check.Fail, Drain},
		{"the check's default is to warn", warns, Prolog, enforce(nil), check.Warn, None},
		{"… the site wants a drain", warns, Prolog, enforce(checks{"a": {Prolog: config.PolicyDrain}}), check.Fail, Drain},
		{"the site wants a warning", fails, Epilog, enforce(checks{"a": {Epilog: config.PolicyWarn}}), check.Warn, None},
		{"… in another hook", fails, Prolog, enforce(checks{"a": {Epilog: config.PolicyWarn}}), check.Fail, Drain},
		{"… in the health check", fails, HealthCheck, enforce(checks{"a": {HealthCheck: config.PolicyWarn}}), check.Warn, None},
		{"the site ignores it", fails, Prolog, enforce(checks{"a": {Prolog: config.PolicyIgnore}}), check.Skip, None},
		{"could not look: open", blind, Prolog, enforce(nil), check.Error, None},
		{"could not look: closed", blind, Prolog, enforce(checks{"a": {OnError: config.PolicyDrain}}), check.Error, Drain},
		{"could not look: closed, observing", blind, Prolog, config.Config{Mode: config.Observe, Checks: checks{"a": {OnError: config.PolicyDrain}}}, check.Error, WouldDrain},
		{"a warning never drains", finds("a", "A", finding(check.Warn, 1, "odd")), Prolog, enforce(checks{"a": {Prolog: config.PolicyDrain, OnError: config.PolicyDrain}}), check.Warn, None},
		{"nothing found", finds("a", "A"), Prolog, enforce(nil), check.Pass, None},
		{"does not apply", finds("a", "A", finding(check.Skip, 0, "no ECC"), finding(check.Skip, 1, "no ECC")), Prolog, enforce(nil), check.Skip, None},
		{"applies to one card", finds("a", "A", finding(check.Skip, 0, "no ECC"), finding(check.Pass, 1, "")), Prolog, enforce(nil), check.Pass, None},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := Run([]check.Check{tt.check}, check.Input{Tier: 1}, tt.cfg, tt.hook, still)
			if v.Outcome != tt.outcome || v.Action != tt.action || v.Checks[0].Outcome != tt.outcome {
				t.Errorf("%s, %s, check %s; want %s, %s", v.Outcome, v.Action, v.Checks[0].Outcome, tt.outcome, tt.action)
			}
			if (v.Action != None) != (v.Code == "A" && v.Class == check.Hardware && v.Reason == "A gpu=1 GPU-1" && len(v.GPUs) == 1) {
				t.Errorf("code %q, class %q, reason %q, GPUs %v", v.Code, v.Class, v.Reason, v.GPUs)
			}
		})
	}
}

func TestWhichChecksRun(t *testing.T) {
	ran := func(in check.Input, c check.Check) Result {
		return Run([]check.Check{c}, in, enforce(nil), Prolog, still).Checks[0]
	}
	c := finds("a", "A", finding(check.Fail, 0, "broken"))
	c.Tier, c.Count = 1, true
	for _, tt := range []struct {
		in   check.Input
		want Result
	}{
		{check.Input{Tier: 1}, Result{"a", check.Fail, "broken", 0}},
		{check.Input{Tier: 0}, Result{"a", check.Skip, "needs tier 1", 0}},
		{check.Input{Tier: 1, Expected: check.Expected{JobCgroup: true}}, Result{"a", check.Skip, "the job's cgroup may hide devices", 0}},
	} {
		if got := ran(tt.in, c); got != tt.want {
			t.Errorf("got %+v, want %+v", got, tt.want)
		}
	}
}

func TestPanickingCheckCouldNotLook(t *testing.T) {
	bad := finds("bad", "BAD")
	bad.Run = func(check.Input) []check.Finding { panic("index out of range") }
	v := Run([]check.Check{bad, finds("a", "A")}, check.Input{}, enforce(nil), Prolog, still)
	if v.Outcome != check.Error || v.Action != None || v.Findings[0].Text != "internal fault: index out of range" || v.Checks[1].Outcome != check.Pass {
		t.Errorf("%+v", v)
	}
}

func TestWorstFirst(t *testing.T) {
	checks := []check.Check{
		finds("warns", "W", finding(check.Warn, 0, "odd")),
		finds("blind", "E", finding(check.Error, 0, "not read")),
		finds("observed", "O", finding(check.Fail, 0, "broken")),
		finds("first", "F", finding(check.Fail, 2, "broken"), finding(check.Fail, 5, "broken")),
		finds("second", "S", finding(check.Fail, 2, "broken"), finding(check.Fail, -1, "the node is; broken")),
	}
	v := Run(checks, check.Input{}, enforce(map[string]config.Check{"observed": {Mode: config.Observe}}), Epilog, still)
	var got []string
	for _, f := range v.Findings {
		got = append(got, f.Check)
	}
	if s := strings.Join(got, " "); s != "first first second second observed blind warns" {
		t.Errorf("order: %s", s)
	}
	if want := "F gpu=2,5 GPU-2 GPU-5; S gpu=2"; v.Reason != want {
		t.Errorf("reason %q, want %q", v.Reason, want)
	}
	if len(v.GPUs) != 2 || v.Code != "F" || v.Action != Drain {
		t.Errorf("GPUs %v, code %s, action %s", v.GPUs, v.Code, v.Action)
	}
	if len(v.Checks) != len(checks) || v.Checks[0].Check != "warns" {
		t.Errorf("results %v", v.Checks)
	}
}

func TestReason(t *testing.T) {
	lost := func(f check.Finding) Finding {
		f.Code = "LOST"
		return Finding{Finding: f}
	}
	unlisted := check.Finding{GPU: &gpu.Identity{Index: -1, PCI: "00000000:3B:00.0", UUID: "GPU-x"}}
	forged := check.Finding{GPU: &gpu.Identity{Index: 1, UUID: "GPU-\"; rm\n$(x)"}}
	tests := []struct {
		name string
		in   []Finding
		want string
	}{
		{"of the node", []Finding{lost(finding(check.Fail, -1, "7 of 8 GPUs"))}, "LOST 7 of 8 GPUs"},
		{"a card without index", []Finding{lost(unlisted)}, "LOST gpu=00000000:3B:00.0 GPU-x"},
		{"twice the same card", []Finding{lost(finding(check.Fail, 3, "a")), lost(finding(check.Fail, 3, "b"))}, "LOST gpu=3 GPU-3"},
		{"text from outside", []Finding{lost(forged)}, "LOST gpu=1 GPU-__ rm__(x)"},
	}
	for _, tt := range tests {
		if got := reason(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	var many []Finding
	for i := range 40 {
		f := finding(check.Fail, -1, strings.Repeat("long ", 10))
		f.Code = fmt.Sprintf("C%d", i)
		many = append(many, Finding{Finding: f})
	}
	if got := reason(many); len(got) > maxReason+20 || !strings.HasSuffix(got, "and 33 more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := "[HC] " + reason([]Finding{lost(finding(check.Fail, 3, ""))}); !strings.HasPrefix(got[:20], "[HC] LOST gpu=3 ") {
		t.Errorf("sinfo -R shows %q", got[:20])
	}
}

func TestOwnLost(t *testing.T) {
	lost := finds("gpu-lost", "LOST", finding(check.Fail, 3, "fell off the bus"))
	tests := []struct {
		name string
		hook Hook
		only []string
		want bool
	}{
		{"the job's own", Prolog, []string{"GPU-2", "GPU-3"}, true},
		{"another's", Prolog, []string{"GPU-2"}, false},
		{"no job", Prolog, nil, false},
		{"after the job", Epilog, []string{"GPU-3"}, false},
	}
	for _, tt := range tests {
		if v := Run([]check.Check{lost}, check.Input{Only: tt.only}, enforce(nil), tt.hook, still); v.OwnLost != tt.want {
			t.Errorf("%s: %t", tt.name, v.OwnLost)
		}
	}
}

func TestLines(t *testing.T) {
	checks := []check.Check{
		finds("gpu-lost", "LOST", finding(check.Fail, 3, "fell off the bus")),
		finds("persistence", "PERSIST", finding(check.Warn, -1, "off")),
	}
	for _, tt := range []struct {
		cfg           config.Config
		summary, line string
	}{
		{enforce(nil), "drain: LOST gpu=3 GPU-3", "gpu-lost: fail: GPU 3 (00000000:03:00.0, /dev/nvidia3, GPU-3): fell off the bus (drain)"},
		{config.Default(), "would drain: LOST gpu=3 GPU-3", "gpu-lost: fail: GPU 3 (00000000:03:00.0, /dev/nvidia3, GPU-3): fell off the bus (would drain)"},
	} {
		v := Run(checks, check.Input{}, tt.cfg, Prolog, still)
		if got := v.Summary(); got != tt.summary {
			t.Errorf("summary %q, want %q", got, tt.summary)
		}
		if got := v.Findings[0].Line(); got != tt.line {
			t.Errorf("line %q, want %q", got, tt.line)
		}
	}
	v := Run(checks[1:], check.Input{}, enforce(nil), Prolog, still)
	if got := v.Summary(); got != "warn: 1 warn" {
		t.Errorf("summary %q", got)
	}
	if got := v.Findings[0].Line(); got != "persistence: warn: off" {
		t.Errorf("line %q", got)
	}
	if got := Run(nil, check.Input{}, enforce(nil), Prolog, still).Summary(); got != "skip" {
		t.Errorf("summary %q", got)
	}
	if got := Name(gpu.Identity{Index: -1}); got != "GPU" {
		t.Errorf("name %q", got)
	}
}

func TestJSON(t *testing.T) {
	in := check.Input{Tier: 1, Answer: gpu.AnswerWhole, Only: []string{"GPU-3"}}
	in.Node.Time = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	v := Run([]check.Check{finds("gpu-lost", "LOST", finding(check.Fail, 3, "fell off the bus"))}, in, enforce(nil), Prolog, still)
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	const card = `{"index":3,"minor":3,"uuid":"GPU-3","pci":"00000000:03:00.0","name":""}`
	const want = `{"schema":"gpuhooks.verdict/1","time":"2026-07-01T12:00:00Z","hook":"prolog","tier":1,"answer":"whole",` +
		`"outcome":"fail","action":"drain","code":"LOST","class":"hardware","reason":"LOST gpu=3 GPU-3","own_lost":true,` +
		`"gpus":[` + card + `],"findings":[{"check":"gpu-lost","code":"LOST","class":"hardware","outcome":"fail","gpu":` + card +
		`,"text":"fell off the bus","policy":"drain","mode":"enforce"}],"checks":[{"check":"gpu-lost","outcome":"fail","text":"fell off the bus"}]}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	var back Verdict
	if err := json.Unmarshal(b, &back); err != nil || back.Reason != v.Reason || len(back.Findings) != 1 {
		t.Errorf("read back: %+v, %v", back, err)
	}
}
