package sim

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// Every key that the C side asks for is in the table, so that none is
// undocumented or, misspelt, always unset.
func TestEveryKeyInTheSourcesIsInTheTable(t *testing.T) {
	known := map[string]bool{}
	for _, k := range Keys() {
		name := strings.TrimPrefix(k.pattern(), "gpu.*.")
		known[name] = true
		if k.Meaning == "" || k.Type == "" {
			t.Errorf("%s has no meaning or type", k.Name)
		}
	}
	if len(known) < 150 {
		t.Fatalf("only %d keys were found in KEYS.md", len(known))
	}
	asks := regexp.MustCompile(`\b(?:number_of|flag_of|text_of|lacks|number_at|text_at)\([^"()]*(?:\([^()]*\)[^"()]*)?"([^"]+)"|\bNEEDS\("([^"]+)"\)|\b(?:TEXT|NUMBER|LIMIT)\(.*"([^"]+)"\)`)
	found := 0
	err := fs.WalkDir(sources, "c", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(sources, path)
		if err != nil {
			return err
		}
		for _, m := range asks.FindAllStringSubmatch(string(text), -1) {
			key := strings.ReplaceAll(m[1]+m[2]+m[3], "%d", "*")
			if found++; !known[key] {
				t.Errorf("%s asks for %q, which is not in KEYS.md", path, key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("the test found only %d places that ask for a key", found)
	}
}

// The ready scenarios use keys of the table only.
func TestProfilesUseKnownKeys(t *testing.T) {
	var patterns []*regexp.Regexp
	for _, k := range Keys() {
		p := strings.ReplaceAll(regexp.QuoteMeta(k.pattern()), `\*`, `(\w+|\*)`)
		patterns = append(patterns, regexp.MustCompile("^"+p+"$"))
	}
	for _, profile := range Profiles() {
		text, err := profiles.ReadFile("profiles/" + profile + ".scenario")
		if err != nil {
			t.Fatal(err)
		}
	lines:
		for line := range strings.Lines(string(text)) {
			key, _, ok := strings.Cut(line, "=")
			key = strings.TrimSpace(key)
			if !ok || strings.HasPrefix(key, "#") {
				continue
			}
			for _, p := range patterns {
				if p.MatchString(key) {
					continue lines
				}
			}
			t.Errorf("%s: unknown key %q", profile, key)
		}
	}
}
