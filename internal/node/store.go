package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Store is the directory of the node's state, /run/gpuhooks.
type Store struct{ Dir string }

// lockWait is how long a hook waits for another's update of the memory, which
// takes a millisecond.
const lockWait = 200 * time.Millisecond

func (s Store) path(name string) string { return filepath.Join(s.Dir, name) }

// Load reads memory.json. Without one, or with one of another boot or version,
// or a half-written one, the memory is empty; the error tells only what should
// be said in a log.
func (s Store) Load(boot string) (Memory, error) {
	fresh := Memory{Schema: MemorySchema, BootID: boot}
	var m Memory
	err := readJSON(s.path("memory.json"), &m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fresh, nil
	case err != nil:
		return fresh, err
	case m.Schema != MemorySchema:
		return fresh, fmt.Errorf("%s: schema %q is not %s: starting afresh", s.path("memory.json"), m.Schema, MemorySchema)
	case m.BootID != boot:
		return fresh, nil
	case len(m.GPUs) > maxGPUs || len(m.Strays) > maxStrays:
		return fresh, fmt.Errorf("%s: %w: too many entries", s.path("memory.json"), errBroken)
	}
	return m, nil
}

// Update changes the memory under its lock, on top of what other hooks have
// written meanwhile.
func (s Store) Update(boot string, change func(*Memory)) error {
	release, err := s.lock()
	if err != nil {
		return err
	}
	defer release()
	m, err := s.Load(boot)
	change(&m)
	return errors.Join(err, writeJSON(s.path("memory.json"), m))
}

// lock is held while the memory, or what lies beside it, changes.
func (s Store) lock() (release func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	return lock(s.path("memory.lock"), lockWait, nil)
}
