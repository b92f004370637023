package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"gpuhooks/internal/record"
)

// Name is what a record's file is called: <job>.<restart>.<node>.json, and
// .line beside it.
type Name struct {
	Job     uint32
	Restart int
	Node    string
}

// String returns the name without its suffix.
func (n Name) String() string { return fmt.Sprintf("%d.%d.%s", n.Job, n.Restart, safe(n.Node)) }

// ParseName reads the name of a record's JSON file.
func ParseName(file string) (Name, bool) {
	base, ok := strings.CutSuffix(file, ".json")
	job, rest, ok1 := strings.Cut(base, ".")
	restart, node, ok2 := strings.Cut(rest, ".")
	id, err1 := strconv.ParseUint(job, 10, 32)
	n, err2 := strconv.ParseUint(restart, 10, 31)
	if !ok || !ok1 || !ok2 || node == "" || err1 != nil || err2 != nil {
		return Name{}, false
	}
	return Name{Job: uint32(id), Restart: int(n), Node: node}, true
}

// Problem is a file that could not be read as a record.
type Problem struct {
	Path string
	Err  error
}

// ErrVersion is a record of another format than this program's.
var ErrVersion = errors.New("record of another version")

// Find reads the records of one job from a directory, or from its records
// directory where it is a spool. Files that are half written, foreign or of
// another version are reported and left alone. A directory that does not exist
// has no records.
func Find(dir string, job uint32) ([]record.Record, []Problem) {
	var out []record.Record
	var bad []Problem
	for _, d := range []string{dir, Records(dir)} {
		names, err := list(d)
		if err != nil {
			bad = append(bad, Problem{d, err})
		}
		for _, n := range names {
			name, ok := ParseName(n)
			if !ok || name.Job != job {
				continue
			}
			path := filepath.Join(d, n)
			r, err := Read(path)
			if err == nil && r.Job.ID != job {
				err = fmt.Errorf("holds job %d", r.Job.ID)
			}
			if err != nil {
				bad = append(bad, Problem{path, err})
				continue
			}
			out = append(out, r)
		}
	}
	return out, bad
}

// list returns the names in a directory, sorted; none where it does not exist.
func list(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// Read reads one record. Anything but a regular file of bounded size with our
// schema is an error; a pipe under a record's name does not block.
func Read(path string) (record.Record, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return record.Record{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return record.Record{}, err
	} else if !st.Mode().IsRegular() {
		return record.Record{}, errors.New("not a regular file")
	}
	var b bytes.Buffer
	b.Grow(int(min(st.Size(), MaxRecord)) + bytes.MinRead) // at once: it is some 50 KB
	if _, err := b.ReadFrom(io.LimitReader(f, MaxRecord+2)); err != nil {
		return record.Record{}, err
	}
	data := b.Bytes()
	if len(data) > MaxRecord+1 {
		return record.Record{}, fmt.Errorf("larger than %d bytes", MaxRecord)
	}
	var r record.Record
	if err := json.Unmarshal(data, &r); err != nil {
		return record.Record{}, fmt.Errorf("not a record: %w", err)
	}
	if r.Schema != record.Schema {
		return record.Record{}, fmt.Errorf("%w: %q, want %q", ErrVersion, record.Clean(r.Schema), record.Schema)
	}
	return r, nil
}
