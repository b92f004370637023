package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"
)

// place names where a key stands: file and line, or the file alone.
func place(path, text string, key toml.Key) string {
	if n := lineOf(text, key); n > 0 {
		return fmt.Sprintf("%s:%d", path, n)
	}
	return path
}

// syntax words an error of the TOML library as file, line, key, cause.
func syntax(path string, err error) error {
	var pe toml.ParseError
	if errors.As(err, &pe) {
		cause := pe.Message
		if cause == "" {
			cause = pe.Error()
			if inner := errors.Unwrap(pe); inner != nil {
				cause = inner.Error()
			}
		}
		if pe.LastKey != "" {
			cause = pe.LastKey + ": " + cause
		}
		return fmt.Errorf("%s:%d: %s", path, pe.Position.Line, cause)
	}
	// A value of the wrong type is worded `toml: line 3 (last key "drain.delay"): …`.
	if rest, ok := strings.CutPrefix(err.Error(), "toml: line "); ok {
		line, rest, _ := strings.Cut(rest, ` (last key "`)
		if key, cause, ok := strings.Cut(rest, `"): `); ok {
			return fmt.Errorf("%s:%s: %s: %s", path, line, key, cause)
		}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// lineOf finds the line on which a key stands, so that an error about a value
// can name it: the TOML library tells positions only for syntax errors. It
// reads table headers and bare `key =` lines, which is how such files are
// written; 0 means not found (a default value).
func lineOf(text string, key toml.Key) int {
	table := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			if end := strings.IndexByte(line, ']'); end > 0 {
				table = strings.ReplaceAll(strings.Trim(line[:end], "[] "), `"`, "")
			}
			if table == strings.Join(key, ".") {
				return i + 1
			}
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		full := strings.Trim(strings.TrimSpace(name), `"'`)
		if table != "" {
			full = table + "." + full
		}
		if full == strings.Join(key, ".") {
			return i + 1
		}
	}
	return 0
}

// suggest lists what is allowed where an unknown key of a file stands that is
// decoded into a value of that type.
func suggest(t reflect.Type, key toml.Key) string {
	for _, part := range key[:len(key)-1] {
		if t.Kind() == reflect.Map {
			t = t.Elem()
			continue
		}
		t = field(t, part)
		if t == nil {
			return ""
		}
	}
	if t.Kind() != reflect.Struct {
		return ""
	}
	var names []string
	for f := range t.Fields() {
		names = append(names, f.Tag.Get("toml"))
	}
	return " (allowed here: " + strings.Join(names, ", ") + ")"
}

// field returns the type of the field with that TOML name, or nil.
func field(t reflect.Type, name string) reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		if f.Tag.Get("toml") == name {
			return f.Type
		}
	}
	return nil
}
