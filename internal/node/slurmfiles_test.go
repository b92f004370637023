package node

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gpuhooks/internal/config"
)

func TestSlurmFiles(t *testing.T) {
	dir := t.TempDir()
	c := config.Default()
	c.Slurm.Conf = filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(c.Slurm.Conf, []byte("NodeName=n1 Gres=gpu:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var l Look
	l.takeSlurm(ctx, readSlurm(c, Options{}))
	if _, ok := l.Conf.Node("n1"); !ok || l.ConfErr != nil {
		t.Errorf("slurm.conf: %+v, %v", l.Conf, l.ConfErr)
	}
	if !errors.Is(l.GresErr, fs.ErrNotExist) || len(l.Problems) != 0 {
		t.Errorf("no gres.conf: %v, problems %v", l.GresErr, l.Problems)
	}
}

// A file system that does not answer costs the look what it knows of Slurm, not
// its deadline.
func TestSlurmFilesNeverCome(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var l Look
	l.takeSlurm(ctx, make(chan slurmFiles))
	if l.ConfErr == nil || l.GresErr == nil || len(l.Problems) != 1 {
		t.Errorf("slurm.conf %v, gres.conf %v, problems %v", l.ConfErr, l.GresErr, l.Problems)
	}
}

// What had arrived counts, also when the deadline has passed by then.
func TestSlurmFilesInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	files := make(chan slurmFiles, 1)
	files <- slurmFiles{gresErr: fs.ErrNotExist}
	var l Look
	if l.takeSlurm(ctx, files); l.ConfErr != nil || len(l.Problems) != 0 {
		t.Errorf("%v, %v", l.ConfErr, l.Problems)
	}
}
