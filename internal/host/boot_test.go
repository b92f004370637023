package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestBootID(t *testing.T) {
	here, err := NewFS("/").BootID()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if got, err := NewFS(root).BootID(); err != nil || got != here {
		t.Errorf("a root without boot id: %q, %v; want the machine's %q", got, err, here)
	}
	dir := filepath.Join(root, "proc/sys/kernel/random")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	own := "01234567-89ab-cdef-0123-456789abcdef"
	write := func(s string) {
		if err := os.WriteFile(filepath.Join(dir, "boot_id"), []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(own + "\n")
	if got, err := NewFS(root).BootID(); err != nil || got != own {
		t.Errorf("a root's own boot id: %q, %v; want %q", got, err, own)
	}
	write("")
	if got, err := NewFS(root).BootID(); err == nil {
		t.Errorf("an empty boot id is taken: %q", got)
	}
}

func TestBootTime(t *testing.T) {
	now := time.Now()
	boot, err := NewFS("/").BootTime(now)
	if err != nil || !boot.Before(now) {
		t.Errorf("boot time %v, %v; want before %v", boot, err, now)
	}
	got, err := parseBootTime([]byte("cpu  1 2 3\nbtime 1700000000\nprocesses 5\n"))
	if want := time.Unix(1700000000, 0); err != nil || !got.Equal(want) {
		t.Errorf("btime = %v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"", "btime x\n", "cpu 1\n"} {
		if _, err := parseBootTime([]byte(bad)); err == nil {
			t.Errorf("parseBootTime(%q) succeeds", bad)
		}
	}
}
