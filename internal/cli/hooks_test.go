package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gpuhooks/internal/config"
)

// A broken file leaves the last good copy in force, found where the file itself
// still says that it is.
func TestHookConfig(t *testing.T) {
	dir := t.TempDir()
	path, state := filepath.Join(dir, "gpuhooks.toml"), filepath.Join(dir, "state")
	load := func(wantBroken bool) (config.Config, string) {
		var err bytes.Buffer
		c, broken := HookConfig(NewLog(Env{Program: "gpu-prolog", Stderr: &err}), path)
		if broken != wantBroken {
			t.Errorf("broken is %t: %s", broken, err.String())
		}
		return c, err.String()
	}
	if c, said := load(false); c.Mode != config.Observe || said != "" {
		t.Errorf("without a file: %s, %q", c.Mode, said)
	}
	good := "mode = \"enforce\"\n[paths]\nstate = \"" + state + "\"\n"
	os.WriteFile(path, []byte(good), 0o644)
	if c, said := load(false); c.Mode != config.Enforce || said != "" {
		t.Errorf("a good file: %s, %q", c.Mode, said)
	}
	if err := config.Keep(path, config.LastGood(state)); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(path, []byte(good+"[slurm\n"), 0o644)
	c, said := load(true)
	if c.Mode != config.Enforce || !strings.Contains(said, "error: "+path+":5: ") || !strings.Contains(said, "last good copy") {
		t.Errorf("a broken file: %s, %q", c.Mode, said)
	}
	os.Remove(config.LastGood(state))
	if c, said := load(true); c.Mode != config.Observe || !strings.Contains(said, "built-in defaults") || !strings.Contains(said, "hint: gpu-prolog config check --config "+path) {
		t.Errorf("without a copy: %s, %q", c.Mode, said)
	}
	os.WriteFile(path, []byte(good+"[drain]\nbrake = 7\n"), 0o644)
	if c, said := load(false); c.Mode != config.Enforce || !strings.Contains(said, "warning: "+path+":5: unknown key \"drain.brake\"") {
		t.Errorf("an unknown key: %s, %q", c.Mode, said)
	}
}
