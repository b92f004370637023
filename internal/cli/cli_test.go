package cli

import (
	"bytes"
	"errors"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// tool is a program with every way to end.
func tool(env Env) *Command {
	root := &Command{Use: "gpu-tool", Args: NoArgs, RunE: func(*Command, []string) error { return nil }}
	fail := func(use string, err error) {
		c := &Command{Use: use, Args: NoArgs, RunE: func(*Command, []string) error { return err }}
		c.Flags().Bool("json", false, "")
		root.AddCommand(c)
	}
	fail("plain", errors.New("slurm.conf: /etc/x: not found"))
	fail("verdict", Exit(Failed))
	fail("fine", Exit(OK))
	fail("hinted", &ExitError{Code: Usage, Err: errors.New("bad key"), Hint: "see gpuhooks.toml"})
	fail("two", errors.Join(errors.New("one"), errors.New("two\nlines")))
	return root
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"", OK, ""},
		{"fine", OK, ""},
		{"verdict", Failed, ""},
		{"plain", Blind, "gpu-tool: error: slurm.conf: /etc/x: not found\n"},
		{"hinted", Usage, "gpu-tool: error: bad key\ngpu-tool: hint: see gpuhooks.toml\n"},
		{"two", Blind, "gpu-tool: error: one\ngpu-tool: error: two lines\n"},
		{"nosuch", Usage, "gpu-tool: error: unknown command \"nosuch\" for \"gpu-tool\"\ngpu-tool: hint: see gpu-tool --help\n"},
		{"--nosuch", Usage, "gpu-tool: error: unknown flag: --nosuch\ngpu-tool: hint: see gpu-tool --help\n"},
		{"plain extra", Usage, "gpu-tool: error: unknown command \"extra\" for \"gpu-tool plain\"\ngpu-tool: hint: see gpu-tool plain --help\n"},
		{"hinted --json", Usage, "{\n  \"schema\": \"gpuhooks.error/1\",\n  \"error\": \"bad key\",\n  \"hint\": \"see gpuhooks.toml\",\n  \"code\": 2\n}\n"},
	} {
		var out, err bytes.Buffer
		env := Env{Program: "gpu-tool", Args: strings.Fields(c.args), Stdout: &out, Stderr: &err}
		if got := Run(env, tool); got != c.code || err.String() != c.stderr || out.Len() != 0 {
			t.Errorf("%q: exit %d, stderr %q, stdout %q; want exit %d, stderr %q", c.args, got, err.String(), out.String(), c.code, c.stderr)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	var out bytes.Buffer
	env := Env{Program: "gpu-tool", Args: []string{"--version"}, Stdout: &out, Stderr: &out}
	if code := Run(env, tool); code != OK || !strings.HasPrefix(out.String(), "gpu-tool ") {
		t.Errorf("exit %d, %q", code, out.String())
	}
}

func TestFromBuildInfo(t *testing.T) {
	info := func(v string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: v}, Settings: settings}
	}
	rev := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	for want, in := range map[string]*debug.BuildInfo{
		"v1.2.3":                   info("v1.2.3"),
		"devel":                    info("(devel)"),
		"devel-0123456789ab":       info("", rev),
		"devel-0123456789ab+dirty": info("(devel)", rev, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
	} {
		if got := fromBuildInfo(in); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                         "plain",
		"two\nlines\r\n":                "two lines",
		"\x1b[31mred\x1b[0m":            "?[31mred?[0m",
		"bad \xff utf8":                 "bad ? utf8",
		"direction \u202e override":     "direction ? override",
		strings.Repeat("é", 5000):       strings.Repeat("é", 1000) + "…",
		"x" + strings.Repeat("é", 5000): "x" + strings.Repeat("é", 999) + "…",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%.40q) = %.40q (%d bytes), want %.40q (%d)", in, got, len(got), want, len(want))
		}
	}
}

func TestHook(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*Decision) int
		code int
		says string
	}{
		{"fine", func(*Decision) int { return OK }, 0, ""},
		{"verdict", func(*Decision) int { return Failed }, 1, ""},
		{"Slurm knows 0 and 1", func(*Decision) int { return Blind }, 1, ""},
		{"panic", func(*Decision) int { panic("no such GPU") }, 0, "gpu-prolog: error: internal fault: no such GPU\n"},
		{"panic after the verdict", func(d *Decision) int { d.Refuse(); panic("no such GPU") }, 1, "gpu-prolog: error: internal fault: no such GPU\n"},
		{"late", func(*Decision) int { time.Sleep(time.Minute); return Failed }, 0, "gpu-prolog: error: not finished after 50ms"},
		{"late after the verdict", func(d *Decision) int { d.Refuse(); time.Sleep(time.Minute); return OK }, 1, "gpu-prolog: error: not finished after 50ms"},
	} {
		var err bytes.Buffer
		log := NewLog(Env{Program: "gpu-prolog", Stderr: &err})
		if code := Hook(log, 50*time.Millisecond, c.run); code != c.code {
			t.Errorf("%s: exit %d, want %d", c.name, code, c.code)
		}
		if !strings.HasPrefix(err.String(), c.says) || c.says == "" && err.Len() > 0 {
			t.Errorf("%s: logged %q", c.name, err.String())
		}
	}
}

// stuck is a log that nobody reads.
type stuck struct{}

func (stuck) Write([]byte) (int, error) { select {} }

func TestHookWithAStuckLog(t *testing.T) {
	log := NewLog(Env{Program: "gpu-prolog", Stderr: stuck{}})
	began := time.Now()
	code := Hook(log, 50*time.Millisecond, func(d *Decision) int { d.Refuse(); log.Errorf("drained"); return OK })
	if took := time.Since(began); code != Failed || took > 5*time.Second {
		t.Errorf("exit %d after %s", code, took)
	}
}

func TestGoSurvivesPanics(t *testing.T) {
	log := NewLog(Env{Program: "gpu-prolog", Stderr: io.Discard})
	done := make(chan bool)
	Go(log, func() { defer close(done); panic("in a goroutine") })
	<-done
}
