package slurmconf

import (
	"errors"
	"fmt"
	"strings"
)

// ParseSlurmdG parses what `slurmd -G` prints (on stderr): the GPU devices in
// the order in which SLURM_JOB_GPUS counts them. Lines that are not about gpu
// are ignored, also those of a log around them. It is the only reliable source
// of the order where AutoDetect and MIG meet on Slurm before 23.02.7.
func ParseSlurmdG(data []byte) ([]Device, error) {
	var out []Device
	for no, text := range strings.Split(string(data), "\n") {
		_, rest, ok := strings.Cut(text, "Gres Name=gpu ")
		if !ok {
			continue
		}
		pairs, _ := parsePairs(rest)
		d, err := detectedDevices(Line{Pairs: pairs})
		if err != nil {
			return nil, fmt.Errorf("slurmd -G: line %d: %w", no+1, err)
		}
		if out = append(out, d...); len(out) > maxDevices {
			return nil, fmt.Errorf("slurmd -G: more than %d devices", maxDevices)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("slurmd -G: no gpu in its output")
	}
	return out, nil
}

// detectedDevices reads one line. MIG and MultipleFiles have several files and
// Count=1; a range of whole GPUs has as many files as its count.
func detectedDevices(l Line) ([]Device, error) {
	file, _ := l.Get("File")
	files, err := expandFiles(file)
	if err != nil {
		return nil, fmt.Errorf("key File: %w", err)
	}
	typ, _ := l.Get("Type")
	if typ == "(null)" {
		typ = ""
	}
	unique, _ := l.Get("UniqueId")
	count, _ := l.Get("Count")
	n, ok := ParseCount(count)
	switch {
	case !ok:
		return nil, fmt.Errorf("key Count: %q is not a count", clip(count))
	case n == 1:
		return []Device{{Type: typ, Files: files, UniqueID: unique}}, nil
	case int64(len(files)) != n:
		return nil, fmt.Errorf("count is %d, but there are %d files", n, len(files))
	}
	var out []Device
	for _, f := range files {
		out = append(out, Device{Type: typ, Files: []string{f}})
	}
	return out, nil
}
