package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gpuhooks/internal/gpu"
)

// A baseline is learnt from this node, and the node is as it says, until a card
// changes.
func TestBaselineOfOneNode(t *testing.T) {
	n := newNode(t)
	code, text, errs := n.person("baseline", "learn")
	if code != 0 || errs != "" || !strings.Contains(text, "\n[card.\"NVIDIA H100\"]\ncount = 2\npcie_gen = 5\npcie_width = 16\n") {
		t.Fatalf("status %d, stderr %q\n%s", code, errs, text)
	}
	n.write("b.toml", text, 0o644)
	check := []string{"baseline", "check", "--baseline", n.path("b.toml")}
	if code, out, errs := n.person(check...); code != 0 || out != "n1 is as expected\n" || errs != "" {
		t.Errorf("status %d, %q, stderr %q", code, out, errs)
	}
	n.answer[5].GPU.Health.PCIeWidth, n.answer[3].Driver.Version = gpu.Some(8), gpu.Some("570.1")
	const want = `WHO                                               WHAT        EXPECTED   FOUND
n1                                                driver      580.95.05  570.1
GPU 1 (00000000:20:00.0, /dev/nvidia1, GPU-1)     PCIe lanes  16         8
`
	code, out, errs := n.person(check...)
	if code != 1 || strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(want), " ") || errs != "" {
		t.Errorf("status %d, stderr %q\n%s", code, errs, out)
	}
	code, out, _ = n.person(append(check, "--json")...)
	var got comparison
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 1 || len(got.Differences) != 2 || got.Differences[1].GPU.UUID != "GPU-1" {
		t.Errorf("status %d, %v\n%s", code, err, out)
	}
	n.toml = "[checks.pcie-link]\nhealthcheck = \"drain\"\n"
	if code, out, errs := n.person("baseline", "check"); code != 2 || out != "" || !strings.Contains(errs, "baseline.toml") {
		t.Errorf("without a baseline: status %d, %q, %q", code, out, errs)
	}
}

// Three nodes' answers give the majority, and name who differs.
func TestBaselineOfSeveralNodes(t *testing.T) {
	n := newNode(t)
	var files []string
	for _, name := range []string{"a", "b", "c"} {
		if name == "b" {
			n.answer[4].GPU.Health.PCIeWidth = gpu.Some(4)
		} else {
			n.answer[4].GPU.Health.PCIeWidth = gpu.Some(16)
		}
		code, out, errs := n.person("--json")
		if code == 2 || code == 3 {
			t.Fatalf("status %d, %s", code, errs)
		}
		n.write(name+".json", strings.Replace(out, `"node": "n1"`, `"node": "`+name+`"`, 1), 0o644)
		files = append(files, n.path(name+".json"))
	}
	code, text, errs := n.person(append([]string{"baseline", "learn"}, files...)...)
	if code != 1 || errs != "# b gpu 0 GPU-0 (NVIDIA H100): pcie_width is 4, most have 16\n" || !strings.Contains(text, "pcie_width = 16\n") {
		t.Errorf("status %d, stderr %q\n%s", code, errs, text)
	}
}

func TestBaselineIsNotLearntFromHalfAnAnswer(t *testing.T) {
	n := newNode(t)
	n.answer[5].GPU.Complete = false
	for _, args := range [][]string{{"learn"}, {"check", "--baseline", n.path("b.toml")}} {
		n.write("b.toml", "schema = \"gpuhooks.baseline/1\"\n", 0o644)
		if code, out, errs := n.person(append([]string{"baseline"}, args...)...); code != 3 || out != "" || !strings.Contains(errs, "GPU 1 did not answer whole") {
			t.Errorf("%v: status %d, %q, %q", args, code, out, errs)
		}
	}
	n.write("x.json", `{"schema":"gpuhooks.job/1"}`, 0o644)
	for file, want := range map[string]string{n.path("x.json"): "schema", n.path("none"): "no such file", "-": "unexpected end of JSON input"} {
		if code, out, errs := n.person("baseline", "learn", file); code != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %q, %q", file, code, out, errs)
		}
	}
}
