package driver

import (
	"context"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/config"
)

// The journal is asked only of the machine itself, and only by hooks that have
// the time.
func TestJournal(t *testing.T) {
	for _, tt := range []struct {
		name, root, path string
		left             time.Duration
		want             string
	}{
		{"prolog", "/", "/usr/bin/journalctl", 4 * time.Second, "--journal /usr/bin/journalctl"},
		{"epilog", "/", "/usr/bin/journalctl", time.Second, ""},
		{"off", "/", "", 4 * time.Second, ""},
		{"simulated node", "/tmp/node", "/usr/bin/journalctl", 4 * time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), tt.left)
			defer cancel()
			p := New(config.Paths{Root: tt.root, Journal: tt.path})
			if got := strings.Join(p.journalArgs(ctx), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
