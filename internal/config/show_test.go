package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestShow(t *testing.T) {
	path := write(t, "mode = \"enforce\"\n[drain]\ndelay = \"250ms\"\n[checks.persistence]\nprolog = \"warn\"\n")
	c, err := Load(path, true)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := Show(c, path)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	var text strings.Builder
	for _, s := range settings {
		text.WriteString(s.String() + "\n")
		if !s.Default {
			set[s.Key] = s.String()
		}
	}
	want := map[string]string{
		"mode":                      `mode = "enforce"`,
		"drain.delay":               `drain.delay = "250ms"`,
		"checks.persistence.prolog": `checks.persistence.prolog = "warn"`,
	}
	if !reflect.DeepEqual(set, want) {
		t.Errorf("set by the file: %v, want %v", set, want)
	}
	// What is shown is a file that says the same.
	again := Default()
	if _, err := toml.Decode(text.String(), &again); err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	if !reflect.DeepEqual(again, c) {
		t.Errorf("shown settings read back as %+v, want %+v", again, c)
	}
}

func TestShowWithoutFile(t *testing.T) {
	settings, err := Show(Default(), filepath.Join(t.TempDir(), "none.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if !s.Default {
			t.Errorf("%s comes from a file that is not there", s.Key)
		}
	}
}
