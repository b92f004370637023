package gpuhooks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The manual pages are written by the programs themselves: make man.
func TestManPagesAreCurrent(t *testing.T) {
	dir := t.TempDir()
	for _, main := range []string{"prolog", "epilog", "healthcheck", "accounting"} {
		cmd := exec.Command("go", "run", "-tags", "man", "./"+main, "man", dir)
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", main, err, out)
		}
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.8"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		want, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join("docs", "man", filepath.Base(page))
		if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run make man (%v)", kept, err)
		}
	}
}
