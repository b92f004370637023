package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
)

// Node is what slurmctld knows of a node.
type Node struct {
	Name       string
	State      string   // the base state, upper case: IDLE, ALLOCATED, DOWN, …
	Flags      []string // DRAIN, NOT_RESPONDING, COMPLETING, …
	Reason     string   // without user and time; "" when there is none
	ReasonUser string
	ReasonTime gpu.Opt[time.Time]
	Version    string // of its slurmd
	Gres       string
}

// Has says whether the node has a flag.
func (n Node) Has(flag string) bool {
	for _, f := range n.Flags {
		if f == flag {
			return true
		}
	}
	return false
}

// Drained says whether the node takes no new jobs by somebody's order.
func (n Node) Drained() bool {
	return n.Has("DRAIN") || strings.HasPrefix(n.State, "DRAIN")
}

// ErrNotANode is wrapped when a name is not that of one node.
var ErrNotANode = errors.New("not the name of one node")

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

// checkNode refuses everything by which scontrol could mean several nodes.
func checkNode(name string) error {
	plain := name != "" && len(name) <= 255 && strings.Contains(letters, name[:1]) && strings.Trim(name, letters+".-") == ""
	if !plain || strings.EqualFold(name, "ALL") || strings.EqualFold(name, "DEFAULT") {
		return fmt.Errorf("%q: %w", name, ErrNotANode)
	}
	return nil
}

// Node asks for the state of one node (one call of scontrol).
func (c Client) Node(ctx context.Context, name string) (Node, error) {
	if err := checkNode(name); err != nil {
		return Node{}, err
	}
	out, err := c.run(ctx, "scontrol show node", c.Scontrol, "--oneliner", "show", "node", name)
	if err != nil {
		return Node{}, err
	}
	n, err := parseNode(out)
	if err == nil && n.Name != name {
		err = fmt.Errorf("scontrol show node: asked for %s, got %q", name, n.Name)
	}
	return n, err
}

// slurmTime is in UTC because the command runs with TZ=UTC0.
const slurmTime = "2006-01-02T15:04:05"

// parseNode reads `scontrol -o show node`. What people write (reason, comment)
// comes after the fields of Slurm's own, whose first occurrence counts.
func parseNode(out string) (Node, error) {
	var n Node
	head := out
	if i := strings.Index(out, " Reason="); i >= 0 {
		head = out[:i]
	}
	n.Name = field(head, "NodeName")
	n.Version = field(head, "Version")
	if n.Gres = field(head, "Gres"); n.Gres == "(null)" {
		n.Gres = ""
	}
	n.State, n.Flags = splitState(field(head, "State"))
	if n.Name == "" || n.State == "" {
		return Node{}, fmt.Errorf("scontrol show node: no node in its answer %q", clip(out))
	}
	_, text, ok := strings.Cut(out, " Reason=")
	if !ok {
		return n, nil
	}
	if reason, user, when, ok := cutStamp(text); ok {
		n.Reason, n.ReasonUser = strings.TrimSpace(reason), user
		if t, err := time.Parse(slurmTime, when); err == nil {
			n.ReasonTime = gpu.Some(t)
		}
	} else if !strings.Contains(head, " Comment=") && !strings.Contains(head, " Extra=") {
		n.Reason = strings.TrimSpace(text) // else it stands in somebody's comment
	}
	return n, nil
}

// cutStamp splits "text [user@time] more" at the first such stamp: slurmctld
// adds it to every reason, while a person may write brackets of their own.
func cutStamp(s string) (text, user, when string, ok bool) {
	for at := 0; ; {
		i := strings.Index(s[at:], " [")
		if i < 0 {
			return "", "", "", false
		}
		at += i
		inside, after, closed := strings.Cut(s[at+2:], "]")
		user, when, stamped := strings.Cut(inside, "@")
		_, err := time.Parse(slurmTime, when)
		if closed && stamped && !strings.ContainsAny(user, "[ \t\n\r\f\v") && (err == nil || when == "Unknown") &&
			(after == "" || strings.ContainsAny(after[:1], " \t\n\r\f\v")) {
			return s[:at], user, when, true
		}
		at += 2
	}
}

// field returns the value of the first key=value word with that key.
func field(s, key string) string {
	for _, w := range strings.Fields(s) {
		if v, ok := strings.CutPrefix(w, key+"="); ok {
			return v
		}
	}
	return ""
}

// splitState takes apart "IDLE*+DRAIN+NOT_RESPONDING". The signs after a state
// (*~#!%$@^-) repeat what flags say.
func splitState(s string) (base string, flags []string) {
	for i, w := range strings.Split(strings.ToUpper(s), "+") {
		w = strings.TrimRight(w, "*~#!%$@^-")
		if i == 0 {
			base = w
		} else if w != "" {
			flags = append(flags, w)
		}
	}
	return base, flags
}

func clip(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// Nodes lists all nodes with their state and reason (one call of sinfo). The
// state is sinfo's: DRAINED, DRAINING, IDLE, …
func (c Client) Nodes(ctx context.Context) ([]Node, error) {
	out, err := c.run(ctx, "sinfo", c.Sinfo, "--noheader", "--all", "--Node", "--format=%N|%T|%H|%u|%E")
	if err != nil {
		return nil, err
	}
	return parseNodes(out)
}

// parseNodes reads sinfo's lines. A node has one line in each of its partitions.
func parseNodes(out string) ([]Node, error) {
	var nodes []Node
	seen := map[string]bool{}
	for _, line := range strings.Split(out, "\n") {
		f := strings.SplitN(line, "|", 5)
		if len(f) < 5 {
			continue // the second line of a reason with a line break in it
		}
		name := strings.TrimSpace(f[0])
		if checkNode(name) != nil || seen[name] {
			continue
		}
		seen[name] = true
		n := Node{Name: name, ReasonUser: strings.TrimSpace(f[3]), Reason: strings.TrimSpace(f[4])}
		n.State, n.Flags = splitState(strings.TrimSpace(f[1]))
		if n.Reason == "none" {
			n.Reason, n.ReasonUser = "", ""
		}
		if t, err := time.Parse(slurmTime, strings.TrimSpace(f[2])); err == nil {
			n.ReasonTime = gpu.Some(t)
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("sinfo: no node in its answer %q", clip(out))
	}
	return nodes, nil
}

// Drain sets the node to drain with a reason. The reason travels as one argument
// of its own, so it cannot carry another key; what Slurm or a terminal could
// misread is replaced.
func (c Client) Drain(ctx context.Context, name, reason string) error {
	if err := checkNode(name); err != nil {
		return err
	}
	reason = PlainReason(reason)
	if reason == "" {
		return errors.New("scontrol update: drain without a reason")
	}
	_, err := c.run(ctx, "scontrol update", c.Scontrol, "update", "NodeName="+name, "State=DRAIN", "Reason="+reason)
	return err
}

// Undrain gives the node back to its jobs; Slurm clears the reason. Unlike
// RESUME it does not bring up a node that is down.
func (c Client) Undrain(ctx context.Context, name string) error {
	if err := checkNode(name); err != nil {
		return err
	}
	_, err := c.run(ctx, "scontrol update", c.Scontrol, "update", "NodeName="+name, "State=UNDRAIN")
	return err
}

// MaxReason is the longest reason that is sent, in bytes.
const MaxReason = 400

// PlainReason is a reason as it is sent: printable ASCII without quotes and
// backslashes, at most MaxReason bytes, no blanks at the ends.
func PlainReason(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t' || r == '\n':
			r = ' '
		case r < ' ' || r > '~':
			r = '?'
		case strings.ContainsRune("\"'`\\$|", r):
			r = '_'
		}
		b.WriteRune(r)
	}
	out := strings.TrimSpace(b.String())
	if len(out) > MaxReason {
		out = strings.TrimSpace(out[:MaxReason-3]) + "..."
	}
	return out
}
