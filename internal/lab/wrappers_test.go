package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// wrap installs a wrapper of the site around a fake program and runs it as
// slurmd would. It returns the status, what slurmd reads and the log.
func wrap(t *testing.T, hook, program string) (status int, output, log string) {
	t.Helper()
	dir := t.TempDir()
	if program != "" {
		writeScript(t, filepath.Join(dir, "gpu-"+hook), "#!/bin/sh\n"+program+"\n")
	}
	text, err := wrapperText(filepath.Join("..", "..", "scripts", hook+".sh"), map[string]string{
		"sbin": dir, "config": "/lab/$SLURMD_NODENAME/gpuhooks.toml", "log": filepath.Join(dir, "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(dir, hook+".sh")
	writeScript(t, wrapper, text)
	cmd := exec.Command(wrapper)
	cmd.Env = []string{"SLURMD_NODENAME=n7", "SLURM_JOB_ID=42"}
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out), ReadFile(filepath.Join(dir, "log"))
}

func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A hook's status reaches Slurm only if it is a verdict: everything else would
// drain a node for a mistake of ours.
func TestWrappersPassVerdictsOnly(t *testing.T) {
	for _, hook := range []string{"prolog", "epilog", "healthcheck"} {
		for _, c := range []struct {
			name, program string
			want          int
		}{
			{"fine", "exit 0", 0},
			{"the verdict", "exit 1", 1},
			{"usage", "exit 2", 0},
			{"killed", "kill -9 $$", 0},
			{"not installed", "", 0},
			{"the configuration is given", `[ "$1" = --config ] && [ "$2" = /lab/n7/gpuhooks.toml ] && exit 1`, 1},
			{"there is a PATH", `command -v sed >/dev/null && exit 1`, 1},
		} {
			t.Run(hook+"/"+c.name, func(t *testing.T) {
				if got, out, _ := wrap(t, hook, c.program); got != c.want {
					t.Errorf("status %d, want %d: %s", got, c.want, out)
				}
			})
		}
	}
}

// What a hook says is kept also where it exits 0; its result is nobody's.
func TestWrappersKeepWarnings(t *testing.T) {
	for _, hook := range []string{"prolog", "epilog", "healthcheck"} {
		_, out, log := wrap(t, hook, `echo table; echo "gpu-x: would drain" >&2; echo "gpu-x: b" >&2`)
		if out != "gpu-x: would drain\ngpu-x: b\n" {
			t.Errorf("%s: slurmd reads %q", hook, out)
		}
		lines := strings.Split(strings.TrimSpace(log), "\n")
		if len(lines) != 2 || !strings.HasSuffix(lines[0], "Z job=42 gpu-x: would drain") || !strings.HasSuffix(lines[1], "Z job=42 gpu-x: b") {
			t.Errorf("%s: log %q", hook, log)
		}
		if _, _, log := wrap(t, hook, "exit 0"); log != "" {
			t.Errorf("%s: a silent hook left %q", hook, log)
		}
	}
}

// The lines that a site edits are there, once each.
func TestWrapperTextWantsItsSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sh")
	writeScript(t, path, "#!/bin/sh\nsbin=/a\n")
	_, err := wrapperText(path, map[string]string{"config": "/c"})
	if err == nil || !strings.Contains(err.Error(), "config=") {
		t.Errorf("got %v, want an error about config=", fmt.Sprint(err))
	}
}
