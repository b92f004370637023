package node

import (
	"os"
	"path/filepath"
	"testing"

	"gpuhooks/internal/xid"
)

func TestCatalogue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "xid.toml")
	for _, tt := range []struct {
		name, text, err string
		action          xid.Action // of 79
	}{
		{"none", "", "", xid.ActionReboot},
		{"a site's", "[xid.79]\naction = \"ignore\"\n", "", xid.ActionIgnore},
		{"unknown key", "[xid.79]\naction = \"ignore\"\nseverty = \"fail\"\n", path + ": line 3: unknown key \"xid.79.severty\"", xid.ActionIgnore},
		{"two faults", "[xid.63]\nseverity = \"bad\"\n[xid.79]\naction = \"ignore\"\nseverity = \"bad\"\n",
			path + ": line 2: [xid.63]: severity \"bad\" is none of info, warn, fail\n" +
				path + ": line 5: [xid.79]: severity \"bad\" is none of info, warn, fail", xid.ActionReboot},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			c, err := Catalogue(path)
			if e, _ := c.Lookup(79); e.Action != tt.action {
				t.Errorf("79: %s, want %s", e.Action, tt.action)
			}
			if got := ""; err != nil && err.Error() != tt.err || err == nil && tt.err != got {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
	if c, err := Catalogue(filepath.Join(t.TempDir(), "absent.toml")); err == nil || len(c.Codes()) == 0 {
		t.Errorf("a file that is not there: %v, %d codes", err, len(c.Codes()))
	}
	if _, err := Catalogue(""); err != nil {
		t.Errorf("no file: %v", err)
	}
}
