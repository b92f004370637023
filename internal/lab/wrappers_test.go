package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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
			{"configuration given", `[ "$1" = --config ] && [ "$2" = /lab/n7/gpuhooks.toml ] && exit 1`, 1},
			{"a path to call commands", `command -v scontrol sed >/dev/null || [ "$PATH" = /usr/sbin:/usr/bin:/sbin:/bin ] && exit 1`, 1},
		} {
			t.Run(hook+"/"+c.name, func(t *testing.T) {
				dir := t.TempDir()
				if c.program != "" {
					writeScript(t, filepath.Join(dir, "gpu-"+hook), "#!/bin/sh\n"+c.program+"\n")
				}
				wrapper := filepath.Join(dir, hook+".sh")
				text, err := wrapperText(filepath.Join("..", "..", "scripts"), hook+".sh", dir, "/lab/$SLURMD_NODENAME/gpuhooks.toml")
				if err != nil {
					t.Fatal(err)
				}
				writeScript(t, wrapper, text)
				cmd := exec.Command(wrapper)
				cmd.Env = []string{"SLURMD_NODENAME=n7"}
				err = cmd.Run()
				if got := cmd.ProcessState.ExitCode(); got != c.want {
					t.Errorf("status %d, want %d (%v)", got, c.want, err)
				}
			})
		}
	}
}

func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// The two lines that a site edits are there, once each.
func TestWrapperTextWantsItsSettings(t *testing.T) {
	dir := t.TempDir()
	writeScript(t, filepath.Join(dir, "x.sh"), "#!/bin/sh\nsbin=/a\n")
	_, err := wrapperText(dir, "x.sh", "/b", "/c")
	if err == nil || !strings.Contains(err.Error(), "config=") {
		t.Errorf("got %v, want an error about config=", fmt.Sprint(err))
	}
}
