package lab

import (
	"context"
	"os"
	"path/filepath"
)

func (l *Lab) wrapper(name string) string { return filepath.Join(l.Dir, "etc", name) }

func (l *Lab) writeHooks() error {
	for _, s := range []string{"prolog.sh", "epilog.sh"} {
		if err := os.WriteFile(l.wrapper(s), []byte("#!/bin/sh\nenv >> "+l.Dir+"/logs/"+s+".env\nexit 0\n"), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) bootCheck(ctx context.Context, n *Node) error { return nil }
