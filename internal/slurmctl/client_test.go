package slurmctl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fake writes a command that runs a shell script and returns its path.
func fake(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "command")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunFailures(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"exits 1", "echo 'slurm_load_node error: \x1b[31mno way\nsecond' >&2; exit 1", "exit status 1: slurm_load_node error: ?[31mno way?second"},
		{"exits 1, speaks on stdout", "echo Node nope not found; exit 1", "exit status 1: Node nope not found"},
		{"hangs", "sleep 10", "no answer: context deadline exceeded"},
		{"ignores TERM", "trap '' TERM; sleep 10", "no answer"},
		{"prints garbage", "head -c 300 /dev/zero", "no node in its answer"},
		{"prints nothing", "", "no node in its answer"},
		{"prints without end", "exec yes", "no answer"},
		{"prints another node", "echo 'NodeName=n2 State=IDLE'", `asked for n1, got "n2"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Client{Scontrol: fake(t, tt.script), Timeout: 300 * time.Millisecond}
			start := time.Now()
			_, err := c.Node(context.Background(), "n1")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if d := time.Since(start); d > time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
	for _, path := range []string{"", "/nowhere/scontrol"} {
		if _, err := (Client{Scontrol: path}).Node(context.Background(), "n1"); !errors.Is(err, ErrNotInstalled) {
			t.Errorf("scontrol at %q: %v", path, err)
		}
	}
}

// A child that outlives scontrol and keeps its pipe must not hold us up.
func TestGrandchildHoldsPipe(t *testing.T) {
	c := Client{Scontrol: fake(t, "sleep 30 & echo 'NodeName=n1 State=IDLE'"), Timeout: 5 * time.Second}
	start := time.Now()
	n, err := c.Node(context.Background(), "n1")
	if err != nil || n.State != "IDLE" {
		t.Errorf("%+v, %v", n, err)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestContextBoundsAll(t *testing.T) {
	c := Client{Scontrol: fake(t, "sleep 10"), Timeout: time.Minute}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := c.Node(ctx, "n1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v", d)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "1")
	t.Setenv("LD_PRELOAD", "/nowhere.so")
	out := filepath.Join(t.TempDir(), "env")
	c := Client{Scontrol: fake(t, "env > "+out+"; echo NodeName=n1 State=IDLE"), Conf: "/etc/lab/slurm.conf"}
	if _, err := c.Node(context.Background(), "n1"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	env := string(b)
	if !strings.Contains(env, "SLURM_CONF=/etc/lab/slurm.conf") || !strings.Contains(env, "TZ=UTC0") {
		t.Errorf("environment %q", env)
	}
	for _, not := range []string{"SLURM_JOB_ID", "LD_PRELOAD", "HOME"} {
		if strings.Contains(env, not) {
			t.Errorf("%s reached scontrol", not)
		}
	}
}

func TestDrainArguments(t *testing.T) {
	out := filepath.Join(t.TempDir(), "args")
	c := Client{Scontrol: fake(t, `for a; do echo "<$a>"; done > `+out)}
	if err := c.Drain(context.Background(), "n1", "[HC] x gpu=0 State=RESUME\nNodeName=ALL \"$(reboot)\" ;`id`"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := "<update>\n<NodeName=n1>\n<State=DRAIN>\n<Reason=[HC] x gpu=0 State=RESUME NodeName=ALL __(reboot)_ ;_id_>\n"
	if string(b) != want {
		t.Errorf("arguments\n%s\nwant\n%s", b, want)
	}
	for _, bad := range []string{"", "ALL", "n[1-3]", "n1,n2", "default", "-h", "n1 n2", "n1\n"} {
		if err := c.Drain(context.Background(), bad, "x"); !errors.Is(err, ErrNotANode) {
			t.Errorf("node %q: %v", bad, err)
		}
	}
	if err := c.Drain(context.Background(), "n1", " \n"); err == nil {
		t.Error("drained without a reason")
	}
}

func TestPlainReason(t *testing.T) {
	if got := PlainReason("a\u2028ä\x00b' \t"); got != "a???b_" {
		t.Errorf("%q", got)
	}
	long := PlainReason(strings.Repeat("x", 1000))
	if len(long) != MaxReason || !strings.HasSuffix(long, "...") {
		t.Errorf("%d bytes", len(long))
	}
}
