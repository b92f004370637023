package slurmconf

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
)

// Setting is one Key=Value of slurm.conf outside the record lines.
type Setting struct {
	Key, Value string
	File       string
	Line       int
}

// Conf is a slurm.conf with everything it includes.
type Conf struct {
	Path     string    // of the first file; "" when parsed from memory
	Settings []Setting // in file order; the last of a key counts, except for Prolog and Epilog (24.05+)
	Nodes    []NodeLine
}

// NodeLine is a NodeName line with the values of the NodeName=DEFAULT lines
// before it filled in.
type NodeLine struct {
	Names HostList
	Line  Line
}

// recordKeys begin a line that describes one object and not settings.
var recordKeys = []string{"NodeName", "PartitionName", "NodeSet", "DownNodes", "FrontendName", "FrontendNode", "SwitchName"}

// ParseConf parses the text of a slurm.conf; includes are not followed. The
// Conf holds all that could be understood, also when there is an error, which
// joins one *Problem for each thing wrong.
func ParseConf(name string, data []byte) (Conf, error) {
	lines, err := parseAll(name, data)
	c, err2 := buildConf(lines)
	return c, errors.Join(err, err2)
}

// ReadConf reads slurm.conf and the files it includes.
func ReadConf(path string) (Conf, error) {
	lines, err := readAll(path)
	c, err2 := buildConf(lines)
	c.Path = path
	return c, errors.Join(err, err2)
}

func buildConf(lines []Line) (Conf, error) {
	var c Conf
	var errs []error
	var defaults []Pair
	for _, l := range lines {
		switch record := recordOf(l); record {
		case "":
			for _, p := range l.Pairs {
				c.Settings = append(c.Settings, Setting{Key: p.Key, Value: p.Value, File: l.File, Line: l.No})
			}
		case "NodeName":
			names := l.Pairs[0].Value
			if strings.EqualFold(names, "DEFAULT") {
				defaults = append(defaults, l.Pairs[1:]...)
				continue
			}
			h, err := ParseHostList(names)
			if err != nil {
				errs = append(errs, l.problem(l.Pairs[0].Key, "%v", err))
				continue
			}
			l.Pairs = append(append([]Pair(nil), defaults...), l.Pairs...)
			c.Nodes = append(c.Nodes, NodeLine{Names: h, Line: l})
		}
	}
	return c, errors.Join(errs...)
}

func recordOf(l Line) string {
	for _, k := range recordKeys {
		if strings.EqualFold(l.Pairs[0].Key, k) {
			return k
		}
	}
	return ""
}

// Get returns the setting that counts for key: the last one in the files.
func (c Conf) Get(key string) (Setting, bool) {
	for i := len(c.Settings) - 1; i >= 0; i-- {
		if strings.EqualFold(c.Settings[i].Key, key) {
			return c.Settings[i], true
		}
	}
	return Setting{}, false
}

// All returns every setting of key in file order.
func (c Conf) All(key string) []Setting {
	var out []Setting
	for _, s := range c.Settings {
		if strings.EqualFold(s.Key, key) {
			out = append(out, s)
		}
	}
	return out
}

// Option looks for name in the comma list of key, as in
// AuthInfo=socket=/run/munge/s,cred_expire=5. The value is "" for a bare name.
func (c Conf) Option(key, name string) (value string, ok bool) {
	s, _ := c.Get(key)
	for _, item := range strings.Split(s.Value, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(item), "=")
		if strings.EqualFold(k, name) {
			return v, true
		}
	}
	return "", false
}

// Node returns the NodeName line that describes the node.
func (c Conf) Node(name string) (NodeLine, bool) {
	for _, n := range c.Nodes {
		if n.Names.Has(name) {
			return n, true
		}
	}
	return NodeLine{}, false
}

// GresItem is one entry of a node's Gres=.
type GresItem struct {
	Name  string // lower case: gpu, shard, mps, …
	Type  string // "" when untyped
	Count int64
}

// Gres returns the entries of the line's Gres=.
func (n NodeLine) Gres() []GresItem {
	v, _ := n.Line.Get("Gres")
	return ParseGresItems(v)
}

// ParseGresItems parses "gpu:h100:8(S:0-1),shard:64". A missing count is 1; one
// that cannot be read is 0.
func ParseGresItems(s string) []GresItem {
	var out []GresItem
	for _, item := range strings.Split(cutParentheses(s), ",") {
		fields := strings.Split(strings.TrimSpace(item), ":")
		name := strings.ToLower(fields[0])
		if name == "" || name == "(null)" {
			continue
		}
		g := GresItem{Name: name, Count: 1}
		fields = fields[1:]
		if n := len(fields); n > 0 {
			if v, ok := ParseCount(fields[n-1]); ok {
				g.Count, fields = v, fields[:n-1]
			} else if n > 1 {
				g.Count = 0
			}
		}
		for _, f := range fields {
			if !strings.EqualFold(f, "no_consume") && g.Type == "" {
				g.Type = f
			}
		}
		out = append(out, g)
	}
	return out
}

// cutParentheses drops "(S:0-1)" and the like, whose commas separate nothing.
func cutParentheses(s string) string {
	var b strings.Builder
	depth := 0
	for _, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ParseCount reads a Slurm count: digits with an optional K, M, G, T or P
// (powers of 1024).
func ParseCount(s string) (int64, bool) {
	digits := strings.TrimRight(s, "kKmMgGtTpP")
	suffix := strings.ToLower(s[len(digits):])
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v < 0 || len(suffix) > 1 {
		return 0, false
	}
	if suffix != "" {
		shift := 10 * (1 + strings.Index("kmgtp", suffix))
		if v > (1<<62)>>shift {
			return 0, false
		}
		v <<= shift
	}
	return v, true
}

// NodeHasGPUs says whether slurm.conf gives the node GPUs, whole or shared.
// known is false when slurm.conf does not describe the node (a dynamic node, an
// unreadable file): that is not "no GPUs".
func NodeHasGPUs(c Conf, node string) (has, known bool) {
	n, ok := c.Node(node)
	if !ok {
		return false, false
	}
	for _, g := range n.Gres() {
		if (g.Name == "gpu" || g.Name == "shard" || g.Name == "mps") && g.Count > 0 {
			return true, true
		}
	}
	return false, true
}

// GresPath is where the gres.conf that belongs to a slurm.conf lies.
func GresPath(slurmConf string) string {
	return filepath.Join(filepath.Dir(slurmConf), "gres.conf")
}
