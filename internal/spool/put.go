// Package spool keeps records on disk: a directory of files, one per run and
// node, each written whole or not at all. It is the queue for delivery and what
// reports read on a node.
package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gpuhooks/internal/line"
	"gpuhooks/internal/record"
)

// MaxRecord bounds a record's file, bytes. A larger one loses its series.
const MaxRecord = 4 << 20

// Placed says where a record went.
type Placed struct {
	Path     string // the JSON file; the line protocol is beside it
	Fallback bool   // not in the spool but in the fallback directory
	Cause    error  // why not in the spool
	Bytes    int    // of both files
}

// Records is the directory of records under a spool.
func Records(spool string) string { return filepath.Join(spool, "records") }

// Put writes a record to <spool>/records, else to the fallback directory. It
// takes no lock and waits for nobody; a record that is there already is
// replaced by this one. The error tells both causes when neither could be
// written.
func Put(spool, fallback string, r record.Record) (Placed, error) {
	files, err := encode(r)
	if err != nil {
		return Placed{}, err
	}
	p, cause := put(Records(spool), files)
	if cause == nil {
		return p, nil
	}
	p, err = put(fallback, files)
	p.Fallback, p.Cause = true, cause
	if err != nil {
		return p, errors.Join(cause, err)
	}
	return p, nil
}

// file is one file of a record.
type file struct {
	name string
	data []byte
}

// encode makes the files. The JSON is last: its presence says that the record is
// complete.
func encode(r record.Record) ([]file, error) {
	data, err := json.Marshal(r)
	if err == nil && len(data) > MaxRecord {
		for i := range r.GPUs {
			r.GPUs[i].Series, r.GPUs[i].Processes = nil, nil
		}
		data, err = json.Marshal(r)
	}
	if err != nil {
		return nil, fmt.Errorf("record of job %d: %w", r.Job.ID, err)
	}
	if len(data) > MaxRecord {
		return nil, fmt.Errorf("record of job %d: %d bytes, more than %d", r.Job.ID, len(data), MaxRecord)
	}
	lines, err := line.Record(r)
	if err != nil {
		return nil, err
	}
	base := Name{Job: r.Job.ID, Restart: r.Job.Restart, Node: r.Node}.String()
	return []file{{base + ".line", lines}, {base + ".json", append(data, '\n')}}, nil
}

func put(dir string, files []file) (Placed, error) {
	if dir == "" {
		return Placed{}, errors.New("no directory for records")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Placed{}, err
	}
	var p Placed
	for _, f := range files {
		p.Path = filepath.Join(dir, f.name)
		p.Bytes += len(f.data)
		if err := write(p.Path, f.data); err != nil {
			return Placed{}, fmt.Errorf("write record: %w", err)
		}
	}
	return p, syncDir(dir)
}

// write replaces a file: all of it is on disk before it gets its name.
func write(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The first error is the one that counts; what is left is only a dot file.
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	// Users read the records of their jobs themselves.
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// syncDir makes the names durable. File systems that cannot (some network ones)
// still have the files.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}

// safe keeps a node's name from being a path.
func safe(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, s)
	if s == "" {
		return "unknown"
	}
	return s[:min(len(s), 128)]
}
