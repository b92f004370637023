package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// write makes a configuration file that root owns and nobody else can write.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gpuhooks.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // lines of the message behind the path
	}{
		{"syntax", "mode = \"observe\"\n[pa ths]\n", []string{`:2: expected '.' or ']' to end table name, but got 't' instead`}},
		{"no value", "\nmode = \n", []string{`:2: mode: expected value but found '\n' instead`}},
		{"twice", "[prolog]\n[prolog]\n", []string{`:2: Key 'prolog' has already been defined.`}},
		{"not UTF-8", "\xff\n", []string{`:1: invalid UTF-8 byte: 0xff`}},
		{"wrong type", "[sampler]\nseries = \"a\"\n", []string{`:2: sampler.series: incompatible types: TOML value has type string; destination has type integer`}},
		{"a duration without unit", "[prolog]\ndeadline = \"4\"\n", []string{`:2: prolog.deadline: "4" is not a duration such as "30s" or "5m"`}},
		{"a duration as number", "[prolog]\ndeadline = 4\n", []string{`:2: prolog.deadline: "4" is not a duration such as "30s" or "5m"`}},
		{"a value of a list", "mode = \"enfroce\"\n", []string{`:1: mode: "enfroce" is not one of observe, enforce`}},
		{"a policy", "[checks.xid]\nprolog = \"drian\"\n", []string{`:2: checks.xid.prolog: "drian" is not one of drain, warn, ignore`}},
		{"a mode of a check", "[checks.xid]\n\nmode = \"off\"\n", []string{`:3: checks.xid.mode: "off" is not one of observe, enforce`}},
		{"an inline table", "checks = { xid = { prolog = \"foo\" } }\n", []string{`: checks.xid.prolog: "foo" is not one of drain, warn, ignore`}},
		{"a relative path", "[paths]\nrun = \"run\"\n", []string{`:2: paths.run: "run" is not an absolute path`}},
		{"an empty path", "[paths]\nprobe = \"\"\n", []string{`:2: paths.probe: "" is not an absolute path`}},
		{"too long", "[epilog]\ndeadline = \"3s\"\n", []string{`:2: epilog.deadline: 3s is not between 100ms and 2s`}},
		{"not a number", "[drain]\nbrake_fraction = nan\n", []string{`:2: drain.brake_fraction: NaN is not between 0 and 1`}},
		{"several at once", "mode = \"x\"\n[drain]\nbrake_min = 0\n", []string{
			`:1: mode: "x" is not one of observe, enforce`,
			`:3: drain.brake_min: 0 is less than 1`,
		}},
		{"an unknown key", "[prolog]\ndeadlin = \"4s\"\n", []string{`:2: unknown key "prolog.deadlin" (allowed here: enabled, deadline, boot)`}},
		{"an unknown table", "[prologue]\n", []string{`:1: unknown key "prologue" (allowed here: mode, paths, slurm, prolog, epilog, healthcheck, sampler, drain, processes, limits, export, checks)`}},
		{"an unknown key of a check", "[checks.xid]\nprologue = \"warn\"\n", []string{`:2: unknown key "checks.xid.prologue" (allowed here: prolog, epilog, healthcheck, on_error, mode)`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.text)
			_, err := Load(path, true)
			if err == nil {
				t.Fatal("no error")
			}
			want := path + strings.Join(tt.want, "\n"+path)
			if err.Error() != want {
				t.Errorf("got:\n%v\nwant:\n%s", err, want)
			}
		})
	}
}

func TestLoadOverDefaults(t *testing.T) {
	c, err := Load(write(t, "mode = \"enforce\"\n[prolog]\ndeadline = \"2s\"\n[checks.xid]\nprolog = \"warn\"\n"), true)
	if err != nil {
		t.Fatal(err)
	}
	d := Default()
	if c.Mode != Enforce || c.Prolog.Deadline.D().Seconds() != 2 || c.Checks["xid"].Prolog != PolicyWarn {
		t.Errorf("what the file says is not in %+v", c)
	}
	if c.Prolog.Boot != d.Prolog.Boot || !c.Prolog.Enabled || c.Paths != d.Paths || c.Drain != d.Drain {
		t.Errorf("what the file does not say is not the default in %+v", c)
	}
}

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	open := write(t, "")
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	large := write(t, strings.Repeat("# a long comment\n", 1<<17))
	tests := []struct{ name, path, want string }{
		{"a directory", dir, dir + ": not a regular file"},
		{"a FIFO", fifo, fifo + ": not a regular file"},
		{"too large", large, large + ": larger than 1048576 bytes"},
		{"writable by others", open, open + ": not owned by root, or writable by others"},
		{"missing", filepath.Join(dir, "none"), "open " + filepath.Join(dir, "none") + ": no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "writable by others" && os.Geteuid() != 0 {
				t.Skip("only root has a file to distrust")
			}
			_, err := Load(tt.path, true)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if c, err := Load(filepath.Join(dir, "none"), false); err != nil || c.Mode != Observe {
		t.Errorf("a file that need not be there: %v", err)
	}
}

func TestLoadHook(t *testing.T) {
	broken, good := write(t, "mode = \n"), write(t, "mode = \"enforce\"\n")
	unknown, bad := write(t, "mode = \"enforce\"\nx = 1\n"), write(t, "mode = \"enforce\"\n[drain]\nbrake_min = 0\n")
	none := filepath.Join(t.TempDir(), "none")
	tests := []struct {
		name, path, last string
		mode             Mode
		broken           bool
		problems         []string // what each begins or ends with
	}{
		{"missing", none, good, Observe, false, nil},
		{"good", good, broken, Enforce, false, nil},
		{"unknown key", unknown, broken, Enforce, false, []string{unknown + `:2: unknown key "x"`}},
		{"broken, with a copy", broken, good, Enforce, true, []string{broken + ":1: mode: expected value", broken + ": using the last good copy " + good}},
		{"bad value, with a copy", bad, good, Enforce, true, []string{bad + ":3: drain.brake_min", bad + ": using the last good copy"}},
		{"broken, without a copy", broken, none, Observe, true, []string{broken + ":1: mode", broken + ": using the built-in defaults"}},
		{"both broken", broken, bad, Observe, true, []string{broken + ":1: mode", broken + ": using the built-in defaults"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, problems, isBroken := LoadHook(tt.path, tt.last)
			if c.Mode != tt.mode || isBroken != tt.broken {
				t.Errorf("mode %s, broken %t; want %s, %t", c.Mode, isBroken, tt.mode, tt.broken)
			}
			if len(problems) != len(tt.problems) {
				t.Fatalf("problems %q, want %q", problems, tt.problems)
			}
			for i, p := range problems {
				if !strings.HasPrefix(p.Error(), tt.problems[i]) {
					t.Errorf("problem %q, want %q", p, tt.problems[i])
				}
			}
		})
	}
}

func TestKeep(t *testing.T) {
	path := write(t, "mode = \"enforce\"\n")
	last := LastGood(filepath.Join(t.TempDir(), "state"))
	for range 2 {
		if err := Keep(path, last); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := Load(last, true); err != nil || c.Mode != Enforce {
		t.Errorf("the copy: %+v, %v", c.Mode, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(last)); err != nil || len(entries) != 1 {
		t.Errorf("beside the copy lie %v, %v", entries, err)
	}
}

func TestOff(t *testing.T) {
	path := write(t, "")
	if Off(path) {
		t.Error("off without the file")
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "off"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !Off(path) {
		t.Error("not off with the file")
	}
}

func TestUnknownChecks(t *testing.T) {
	path := write(t, "[checks.xid]\n[checks.xids]\nprolog = \"warn\"\n")
	c, err := Load(path, true)
	if err != nil {
		t.Fatal(err)
	}
	got := c.UnknownChecks(path, []string{"gpu-lost", "xid"})
	want := path + `:2: unknown check "xids" (allowed here: gpu-lost, xid)`
	if len(got) != 1 || got[0].Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
