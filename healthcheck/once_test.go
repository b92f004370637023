package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"gpuhooks/internal/cli"
)

// together starts the program so often at the same time, with a driver that takes
// 0.3 s, and returns the statuses.
func (n *testNode) together(times int, args ...string) []int {
	n.t.Helper()
	environ := n.environ
	n.person("--cached") // writes configuration and answer
	n.write("asked", "", 0o644)
	n.write("probe", "#!/bin/sh\necho asked >>"+n.path("asked")+"\nsleep 0.3\ncat "+n.path("answer")+"\n", 0o755)
	codes := make([]int, times)
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() {
			codes[i] = cli.Run(cli.Env{
				Program: "gpu-healthcheck", Args: append([]string{"--config", n.path("gpuhooks.toml")}, args...), Environ: environ,
				Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Now: n.now,
			}, newCommand)
		})
	}
	all.Wait()
	return codes
}

// Twenty that start together read the hardware once; who has missed the beginning
// of that reading shares the next with all who have.
func TestReadTogether(t *testing.T) {
	n := newNode(t)
	n.environ = nil
	n.lose()
	for _, code := range n.together(20, "--quiet") {
		if code != 1 {
			t.Errorf("status %d", code)
		}
	}
	if got := strings.Count(n.read("asked"), "asked"); got > 2 {
		t.Errorf("the driver was read %d times", got)
	}
}

// Of twenty health checks one works.
func TestCheckTogether(t *testing.T) {
	n := newNode(t)
	n.lose()
	failed := 0
	for _, code := range n.together(20) {
		failed += code
	}
	if got := strings.Count(n.read("asked"), "asked"); got != 1 || failed != 1 {
		t.Errorf("the driver was read %d times, %d said that the node is broken", got, failed)
	}
	if got := strings.Count(n.calls(), "update"); got != 1 {
		t.Errorf("drained %d times", got)
	}
}
