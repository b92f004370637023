package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// defaultLine is a default in etc/gpuhooks.toml: a comment mark without a blank.
var defaultLine = regexp.MustCompile(`(?m)^#([a-z_]+ = )`)

func TestExampleFile(t *testing.T) {
	b, err := os.ReadFile("../../etc/gpuhooks.toml")
	if err != nil {
		t.Fatal(err)
	}
	asInstalled, bare := string(b), defaultLine.ReplaceAllString(string(b), "$1")
	for name, text := range map[string]string{"as installed": asInstalled, "comment marks removed": bare} {
		c, err := Load(write(t, text), true)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(c, Default()) {
			t.Errorf("%s: got  %+v\nwant %+v", name, c, Default())
		}
	}
	var c Config
	md, err := toml.Decode(bare, &c)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys(reflect.TypeFor[Config](), nil) {
		if !md.IsDefined(key...) {
			t.Errorf("%s is not in the file", strings.Join(key, "."))
		}
	}
}

// keys lists every key of the schema but those below [checks].
func keys(t reflect.Type, above toml.Key) []toml.Key {
	var out []toml.Key
	for f := range t.Fields() {
		key := append(append(toml.Key{}, above...), f.Tag.Get("toml"))
		switch f.Type.Kind() {
		case reflect.Struct:
			out = append(out, keys(f.Type, key)...)
		case reflect.Map:
		default:
			out = append(out, key)
		}
	}
	return out
}
