package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/gpu"
)

// Directory says whether files can be made in a directory, and how much room it
// has. One that does not exist yet is made when it is first needed, so that the
// nearest one above it counts. On a hung network filesystem it does not return.
func Directory(path string) gpu.Dir {
	d := gpu.Dir{Path: path}
	at, err := nearest(path)
	if err != nil {
		d.Why = reasonOf(err)
		return d
	}
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		d.Why = "statfs: " + err.Error()
		return d
	}
	d.Free = gpu.Some(st.Bavail * uint64(max(st.Bsize, 0)))
	if err := tryWrite(at); err != nil {
		d.Why = reasonOf(err)
		return d
	}
	d.Writable = true
	return d
}

// nearest is the path or the nearest directory above it that exists.
func nearest(path string) (string, error) {
	for {
		st, err := os.Stat(path)
		switch {
		case err == nil && st.IsDir():
			return path, nil
		case err == nil:
			return "", fmt.Errorf("%s is no directory", path)
		case !errors.Is(err, fs.ErrNotExist), path == filepath.Dir(path):
			return "", err
		}
		path = filepath.Dir(path)
	}
}

// tryWrite writes a page into a file without a name, which leaves no trace; a
// filesystem that has no such files is asked for the right to write.
func tryWrite(dir string) error {
	fd, err := retry(func() (int, error) { return unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600) })
	switch err {
	case nil:
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT:
		return unix.Access(dir, unix.W_OK|unix.X_OK)
	default:
		return err
	}
	defer unix.Close(fd)
	_, err = retry(func() (int, error) { return unix.Write(fd, make([]byte, 4096)) })
	return err
}

// reasonOf is the kernel's word without our path before it.
func reasonOf(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}
