package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// What a reader finds instead of a file of this boot.
var (
	ErrOtherBoot = errors.New("written in another boot")
	ErrVersion   = errors.New("written by another version")
	ErrBroken    = errors.New("half-written or not ours")
)

// maxFile bounds what is read of one state file.
const maxFile = 64 << 20

// WriteFile replaces a file by rename, so that a reader sees all of the old or
// all of the new. State lives no longer than the boot: nothing is synced.
func WriteFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the first error is the one to report
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeJSON is WriteFile with a value.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return WriteFile(path, append(b, '\n'))
}

// readJSON reads a value. A file that is not whole is ErrBroken; a missing one
// is fs.ErrNotExist. Symbolic links and anything but plain files are not read.
func readJSON(path string, v any) error {
	st, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s: %w: not a plain file", path, ErrBroken)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(b) > maxFile {
		return fmt.Errorf("%s: %w: larger than %d bytes", path, ErrBroken, maxFile)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrBroken, err)
	}
	return nil
}

// accept says whether a file's schema is one that this version reads.
func accept(path, got string, schemas ...string) error {
	for _, s := range schemas {
		if got == s {
			return nil
		}
	}
	return fmt.Errorf("%s: %w: schema %q", path, ErrVersion, got)
}

// sameBoot says whether a file belongs to this boot.
func sameBoot(path, got, want string) error {
	if got != want {
		return fmt.Errorf("%s: %w", path, ErrOtherBoot)
	}
	return nil
}

// missing says that a file is simply not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
