package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"

	"github.com/BurntSushi/toml"
)

// Setting is one value of a configuration.
type Setting struct {
	Key     string `json:"key"`     // drain.brake_min
	Value   any    `json:"value"`   // string, bool, number or a list of strings; durations as "30s"
	Default bool   `json:"default"` // the file does not set it
}

// Show lists every value of c in the order of the file, and which of them the
// file at path sets. A missing file sets none.
func Show(c Config, path string) ([]Setting, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var tree map[string]any
	md, err := toml.Decode(string(text), &tree)
	if err != nil {
		return nil, syntax(path, err)
	}
	var out []Setting
	walk(reflect.ValueOf(c), nil, func(key toml.Key, v any) {
		out = append(out, Setting{key.String(), v, !md.IsDefined(key...)})
	})
	return out, nil
}

// walk calls f for every value below v. Of the [checks] only what is set is a
// value: an empty string there means the check's own default.
func walk(v reflect.Value, above toml.Key, f func(toml.Key, any)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), append(slices.Clone(above), v.Type().Field(i).Tag.Get("toml")), f)
		}
	case reflect.Map:
		checks := v.Interface().(map[string]Check)
		for _, name := range slices.Sorted(maps.Keys(checks)) {
			walk(reflect.ValueOf(checks[name]), append(slices.Clone(above), name), func(key toml.Key, v any) {
				if v != "" {
					f(key, v)
				}
			})
		}
	default:
		f(above, plain(v))
	}
}

// plain turns named types into what TOML and JSON know.
func plain(v reflect.Value) any {
	switch {
	case v.Type() == reflect.TypeFor[Duration]():
		return v.Interface().(Duration).D().String()
	case v.Kind() == reflect.String:
		return v.String()
	}
	return v.Interface()
}

// String is the setting as it would stand in a file with dotted keys.
func (s Setting) String() string {
	switch v := s.Value.(type) {
	case string:
		return fmt.Sprintf("%s = %q", s.Key, v)
	case []string:
		text := ""
		for i, w := range v {
			if i > 0 {
				text += ", "
			}
			text += fmt.Sprintf("%q", w)
		}
		return fmt.Sprintf("%s = [%s]", s.Key, text)
	}
	return fmt.Sprintf("%s = %v", s.Key, s.Value)
}
