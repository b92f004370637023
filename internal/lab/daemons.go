package lab

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

func (l *Lab) mungeSocket() string { return filepath.Join(l.Dir, "munge", "socket") }

// startMunge starts a munged with a key and socket of its own.
func (l *Lab) startMunge(ctx context.Context) error {
	dir := filepath.Join(l.Dir, "munge")
	key := make([]byte, 128)
	rand.Read(key)
	if err := os.WriteFile(filepath.Join(dir, "key"), key, 0o600); err != nil {
		return err
	}
	err := l.daemon("munged", nil, "munged", "--foreground", "--force",
		"--socket="+l.mungeSocket(),
		"--key-file="+filepath.Join(dir, "key"),
		"--pid-file="+filepath.Join(dir, "pid"),
		"--seed-file="+filepath.Join(dir, "seed"),
		"--log-file="+filepath.Join(l.Dir, "logs", "munged.log"))
	if err != nil {
		return err
	}
	return l.waitUntil(ctx, "munged", 10*time.Second, func() bool {
		c, err := net.Dial("unix", l.mungeSocket())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (l *Lab) startSlurmctld(ctx context.Context) error {
	if err := l.daemon("slurmctld", l.clientEnv(), "slurmctld", "-D", "-f", l.SlurmConf()); err != nil {
		return err
	}
	return l.waitUntil(ctx, "slurmctld", 20*time.Second, func() bool {
		_, err := l.slurm(ctx, "scontrol", "ping")
		return err == nil
	})
}

// startSlurmd starts a node's slurmd and waits until it listens.
func (l *Lab) startSlurmd(ctx context.Context, n *Node) error {
	err := l.daemon(n.Name, l.clientEnv(), l.entering(n, "slurmd", "-D", "-N", n.Name, "-f", l.SlurmConf())...)
	if err != nil {
		return err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", l.ports[1+l.index(n)])
	return l.waitUntil(ctx, n.Name, 20*time.Second, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (l *Lab) index(n *Node) int {
	for i := range l.Nodes {
		if l.Nodes[i] == n {
			return i
		}
	}
	return -1
}
