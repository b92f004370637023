package slurmconf

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strings"
)

// Gres is a gres.conf with everything it includes.
type Gres struct {
	Auto   string // AutoDetect= that stands alone, lower case; "" when there is none
	Lines  []GresLine
	Digest string // of the lines that count; changes with the file
}

// GresLine is one line of gres.conf that names a node or a resource.
type GresLine struct {
	Line     Line
	Nodes    HostList // meaningful when HasNodes
	HasNodes bool
	Auto     string   // AutoDetect= of a line with NodeName, lower case; without NodeName Slurm ignores it
	Name     string   // lower case: gpu, shard, mps; "" on a line that only sets AutoDetect
	Type     string   // as written
	Files    []string // File= or MultipleFiles= expanded, in the order written
	Multiple bool     // MultipleFiles: all files together are one device
	Count    int64    // Count=, or 0 when not written
	Flags    []string // lower case
	Cores    string
	Links    string
}

// Device is one entry of Slurm's GPU list on a node. Its place in the list is
// the number in SLURM_JOB_GPUS.
type Device struct {
	Type     string
	Files    []string // one, or several for MultipleFiles and MIG
	UniqueID string   // from slurmd -G where it prints one
}

// maxDevices is Slurm's own limit of devices with files on a node.
const maxDevices = 1024

var gresKeys = []string{"AutoDetect", "Cores", "Core", "CPUs", "CPU", "Count", "File", "Files", "Flags", "Links", "Link", "MultipleFiles", "Name", "NodeName", "Type", "UUID"}

var autoDetects = []string{"nvml", "nvidia", "rsmi", "oneapi", "nrt", "full", "off"}

// ParseGres parses the text of a gres.conf; includes are not followed. The
// Gres holds all that could be understood, also when there is an error, which
// joins one *Problem for each thing wrong.
func ParseGres(name string, data []byte) (Gres, error) {
	lines, err := parseAll(name, data)
	g, err2 := buildGres(lines)
	return g, errors.Join(err, err2)
}

// ReadGres reads gres.conf and the files it includes.
func ReadGres(path string) (Gres, error) {
	lines, err := readAll(path)
	g, err2 := buildGres(lines)
	return g, errors.Join(err, err2)
}

func buildGres(lines []Line) (Gres, error) {
	var g Gres
	var errs []error
	sum := fnv.New128a()
	for _, l := range lines {
		gl, e := parseGresLine(l)
		errs = append(errs, e...)
		for _, p := range l.Pairs {
			fmt.Fprintf(sum, "%q=%q ", p.Key, p.Value)
		}
		fmt.Fprintln(sum)
		if !gl.HasNodes && gl.Name == "" {
			if gl.Auto != "" {
				g.Auto = gl.Auto
			}
			continue
		}
		if !gl.HasNodes {
			gl.Auto = ""
		}
		g.Lines = append(g.Lines, gl)
	}
	g.Digest = hex.EncodeToString(sum.Sum(nil)[:16])
	return g, errors.Join(errs...)
}

func parseGresLine(l Line) (GresLine, []error) {
	gl := GresLine{Line: l}
	var errs []error
	fail := func(p Pair, format string, args ...any) {
		errs = append(errs, l.problem(p.Key, format, args...))
	}
	for _, p := range l.Pairs {
		if !slices.ContainsFunc(gresKeys, func(k string) bool { return strings.EqualFold(k, p.Key) }) {
			fail(p, "unknown key")
			continue
		}
		var err error
		switch strings.ToLower(p.Key) {
		case "nodename":
			gl.HasNodes = true
			gl.Nodes, err = ParseHostList(p.Value)
		case "autodetect":
			if gl.Auto = strings.ToLower(p.Value); !slices.Contains(autoDetects, gl.Auto) {
				err = fmt.Errorf("%q is not one of %s", clip(p.Value), strings.Join(autoDetects, ", "))
			}
		case "name":
			gl.Name = strings.ToLower(p.Value)
		case "type":
			gl.Type = p.Value
		case "file", "files", "multiplefiles":
			if gl.Files != nil {
				err = errors.New("a line has either File or MultipleFiles, not both")
				break
			}
			gl.Multiple = strings.EqualFold(p.Key, "MultipleFiles")
			gl.Files, err = expandFiles(p.Value)
			if err == nil && gl.Multiple && len(gl.Files) < 2 {
				err = errors.New("needs two or more files; use File")
			}
		case "count":
			var ok bool
			if gl.Count, ok = ParseCount(p.Value); !ok {
				err = fmt.Errorf("%q is not a count", clip(p.Value))
			}
		case "flags":
			gl.Flags = strings.Split(strings.ToLower(p.Value), ",")
		case "cores", "core", "cpus", "cpu":
			gl.Cores = p.Value
		case "links", "link":
			gl.Links = p.Value
		}
		if err != nil {
			fail(p, "%v", err)
		}
	}
	if gl.Name == "gpu" && gl.Files != nil && gl.Count > 0 && gl.Count != int64(gl.devices()) {
		errs = append(errs, l.problem("Count", "%d, but the line has %d devices", gl.Count, gl.devices()))
	}
	return gl, errs
}

func (gl GresLine) devices() int {
	if gl.Multiple {
		return 1
	}
	return len(gl.Files)
}

func expandFiles(s string) ([]string, error) {
	h, err := ParseHostList(s)
	switch {
	case err != nil:
		return nil, err
	case h.Len() > maxDevices:
		return nil, fmt.Errorf("more than %d files", maxDevices)
	case h.Len() == 0:
		return nil, errors.New("no file")
	}
	return h.Expand(), nil
}

// NodeGres is what gres.conf says about one node.
type NodeGres struct {
	Auto  string     // the AutoDetect that counts: nvml, nvidia, …; "" or "off" when nothing is detected
	Lines []GresLine // those that apply, in Slurm's order: lines without NodeName first
}

// ForNode returns what applies to a node. With node "" only lines without
// NodeName apply.
func (g Gres) ForNode(node string) NodeGres {
	n := NodeGres{Auto: g.Auto}
	for _, l := range g.Lines {
		if !l.HasNodes {
			n.Lines = append(n.Lines, l)
		}
	}
	own := false
	for _, l := range g.Lines {
		if !l.HasNodes || node == "" || !l.Nodes.Has(node) {
			continue
		}
		if l.Auto != "" && !own {
			n.Auto, own = l.Auto, true
		}
		if l.Name != "" {
			n.Lines = append(n.Lines, l)
		}
	}
	return n
}

// Detects says whether Slurm makes the list by detection.
func (n NodeGres) Detects() bool { return n.Auto != "" && n.Auto != "off" }

// Has says whether a line defines the resource (gpu, shard, mps).
func (n NodeGres) Has(name string) bool {
	return slices.ContainsFunc(n.Lines, func(l GresLine) bool { return l.Name == name })
}

// Devices are the gpu devices written in the lines, in list order. A device
// that a later line repeats is dropped, as Slurm does.
func (n NodeGres) Devices() []Device {
	var out []Device
	seen := map[string]bool{}
	for _, l := range n.Lines {
		if l.Name != "gpu" {
			continue
		}
		groups := [][]string{l.Files}
		if !l.Multiple {
			groups = groups[:0]
			for _, f := range l.Files {
				groups = append(groups, []string{f})
			}
		}
		for _, files := range groups {
			key := strings.Join(files, ",")
			if key == "" || seen[key] || len(out) == maxDevices {
				continue
			}
			seen[key] = true
			out = append(out, Device{Type: l.Type, Files: files})
		}
	}
	return out
}

// Foreign says whether every GPU that Slurm has for the node is another vendor's:
// it detects those, or no device file is NVIDIA's. Without any GPU it is false.
func (n NodeGres) Foreign() bool {
	switch n.Auto {
	case "rsmi", "oneapi", "nrt":
		return true
	}
	files := 0
	for _, d := range n.Devices() {
		for _, f := range d.Files {
			if strings.HasPrefix(path.Base(f), "nvidia") {
				return false
			}
			files++
		}
	}
	return files > 0 && !n.Detects()
}
