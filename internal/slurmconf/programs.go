package slurmconf

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Program is what lies at the path of a Prolog=, Epilog= or HealthCheckProgram=.
type Program struct {
	Files []ProgramFile // those that the path or pattern names, in alphabetical order
}

// ProgramFile is one script or binary.
type ProgramFile struct {
	Path  string
	Mode  os.FileMode
	Text  bool // not an executable of the machine: it can be pushed configless
	Hooks bool // it names a program of gpuhooks, or is one
}

// Runnable says whether slurmd, as root, accepts the file: it asks for read and
// execute permission, and refuses a binary that can only be executed.
func (p ProgramFile) Runnable() bool {
	return p.Mode.IsRegular() && p.Mode&0o111 != 0 && p.Mode&0o444 != 0
}

// ReadPrograms looks at the scripts that slurm.conf names; relative paths start
// at its directory. It opens regular files only.
func ReadPrograms(c Conf) map[string]Program {
	out := map[string]Program{}
	for _, key := range []string{"Prolog", "Epilog", "HealthCheckProgram"} {
		for _, s := range c.All(key) {
			path := s.Value
			if !filepath.IsAbs(path) && c.Path != "" {
				path = filepath.Join(filepath.Dir(c.Path), path)
			}
			out[s.Value] = readProgram(path)
		}
	}
	return out
}

func readProgram(pattern string) Program {
	var p Program
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return p
	}
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			continue
		}
		f := ProgramFile{Path: path, Mode: st.Mode()}
		if st.Mode().IsRegular() {
			head, err := readHead(path)
			f.Text = err == nil && !bytes.HasPrefix(head, []byte("\x7fELF"))
			f.Hooks = bytes.Contains(head, []byte("gpu-prolog")) || bytes.Contains(head, []byte("gpu-epilog")) || bytes.Contains(head, []byte("gpu-healthcheck"))
		}
		p.Files = append(p.Files, f)
	}
	return p
}

// readHead reads enough of a script to see what it calls.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	n, err := io.ReadFull(f, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return buf[:n], err
}
