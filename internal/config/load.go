package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
)

// Path is where the file is when no flag says otherwise.
const Path = "/etc/gpuhooks/gpuhooks.toml"

// maxSize bounds what is read: a configuration is small, a mistake may be large.
const maxSize = 1 << 20

// Load reads the file for a command that a person runs: a missing file is an
// error only if must is set, anything unknown or out of range is an error that
// names file, line and key. The returned Config is usable only without an error.
func Load(path string, must bool) (Config, error) {
	c, unknown, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		return Default(), nil
	case err != nil:
		return c, err
	case len(unknown) > 0:
		return c, errors.Join(unknown...)
	}
	return c, nil
}

// LoadHook reads the file for a hook, which must go on whatever it finds: a
// missing file is the defaults; a broken one is the last good copy kept in
// lastGood, else the defaults; unknown keys are warnings. problems is what must
// be said; broken says that the file itself was not used.
func LoadHook(path, lastGood string) (c Config, problems []error, broken bool) {
	c, unknown, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Default(), nil, false
	case err == nil:
		return c, unknown, false
	}
	problems = append(problems, err)
	if c, _, err := read(lastGood); err == nil {
		return c, append(problems, fmt.Errorf("%s: using the last good copy %s", path, lastGood)), true
	}
	return Default(), append(problems, fmt.Errorf("%s: using the built-in defaults", path)), true
}

// read decodes over the defaults and validates. Unknown keys come back apart
// from the error, because hooks and people judge them differently.
func read(path string) (Config, []error, error) {
	c := Default()
	text, err := readText(path)
	if err != nil {
		return c, nil, err
	}
	md, err := toml.Decode(text, &c)
	if err != nil {
		return c, nil, syntax(path, err)
	}
	unknown := undecoded(path, text, md, reflect.TypeFor[Config]())
	err = c.validate(func(key string) string { return place(path, text, strings.Split(key, ".")) })
	return c, unknown, err
}

// undecoded are the keys that nothing was decoded into, as errors.
func undecoded(path, text string, md toml.MetaData, t reflect.Type) []error {
	var out []error
	for _, k := range md.Undecoded() {
		out = append(out, fmt.Errorf("%s: unknown key %q%s", place(path, text, k), k.String(), suggest(t, k)))
	}
	return out
}

// Decode reads another TOML file that decides what root does (the baseline) into
// v, a pointer to a struct, as strictly as a person's configuration: root's own
// file, and unknown keys are errors that name file and line.
func Decode(path string, v any) error {
	text, err := readText(path)
	if err != nil {
		return err
	}
	md, err := toml.Decode(text, v)
	if err != nil {
		return syntax(path, err)
	}
	return errors.Join(undecoded(path, text, md, reflect.TypeOf(v).Elem())...)
}

// readText reads a configuration file. It never waits (a FIFO may lie there by
// mistake), and root does not follow a file that somebody else could write: it
// names commands that root will run.
func readText(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a regular file", path)
	case st.Size() > maxSize:
		return "", fmt.Errorf("%s: larger than %d bytes", path, maxSize)
	case os.Geteuid() == 0 && ok && (sys.Uid != 0 || st.Mode().Perm()&0o022 != 0):
		return "", fmt.Errorf("%s: not owned by root, or writable by others", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize))
	return string(text), err
}

// Keep stores a copy of a configuration that loaded without an error, for the
// day on which the file is broken. A copy that is already equal is left alone,
// and so is a good copy when the file is broken now.
func Keep(path, lastGood string) error {
	if _, _, err := read(path); err != nil {
		return nil // the hook has said so
	}
	text, err := readText(path)
	if err != nil {
		return err
	}
	if old, err := readText(lastGood); err == nil && old == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(lastGood), 0o755); err != nil {
		return err
	}
	tmp := lastGood + fmt.Sprintf(".%d", os.Getpid())
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, lastGood)
}

// Off says whether the file `off` lies beside the configuration: every hook
// looks for it first and then does nothing.
func Off(path string) bool {
	_, err := os.Lstat(filepath.Join(filepath.Dir(path), "off"))
	return err == nil
}

// LastGood is where the last good copy of the configuration at path lies.
func LastGood(state string) string { return filepath.Join(state, "last-good.toml") }
