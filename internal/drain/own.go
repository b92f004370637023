package drain

import (
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/node"
	"gpuhooks/internal/slurmctl"
)

// Adopt takes a drain with our prefix that this node does not remember as ours:
// it is of another version, or the state was lost. What it may lead to is judged
// by its codes alone.
func Adopt(n slurmctl.Node, now time.Time) node.Drained {
	code, _ := CodeOf(n.Reason)
	return node.Drained{Reason: n.Reason, Code: code, Class: ClassOf(n.Reason), Time: n.ReasonTime.Or(now).UTC(), Confirmed: now.UTC()}
}

// ClassOf judges a reason of ours by its codes: hardware if one of them is, else
// the first one's. It is "" where this version does not know a code: then a
// person must look. Earlier versions wrote the names of checks.
func ClassOf(reason string) check.Class {
	if !Ours(reason) {
		return ""
	}
	var first check.Class
	for _, word := range codes(reason) {
		c := classOfCode(word)
		if c == "" || c == check.Hardware {
			return c
		}
		if first == "" {
			first = c
		}
	}
	return first
}

// Names says that a reason of ours has that code among its codes.
func Names(reason, code string) bool {
	return Ours(reason) && slices.ContainsFunc(codes(reason), func(c string) bool { return strings.EqualFold(c, code) })
}

// codes are the first words of a reason's pieces.
func codes(reason string) []string {
	var out []string
	for piece := range strings.SplitSeq(reason[len(Prefix):], ";") {
		word, _, _ := strings.Cut(strings.TrimSpace(piece), " ")
		out = append(out, word)
	}
	return out
}

// classOfCode is the class of the check with that code or name; "" when there is
// none. An XID's number is not looked up: all of them need a person.
func classOfCode(code string) check.Class {
	for _, c := range check.All() {
		if strings.EqualFold(code, c.Code) || strings.EqualFold(code, c.Name) {
			return c.Class
		}
	}
	return ""
}

// remember has the node remember what became of its drain.
func remember(d node.Durable, r Result, code string, class check.Class, now time.Time) error {
	own, err := d.Drains()
	if err != nil {
		own = node.Drains{}
	}
	now = now.UTC()
	old := own.Drained
	switch {
	case r.Outcome == Drained:
		own.Drained = &node.Drained{Reason: r.Reason, Code: code, Class: class, Time: now, Confirmed: now}
	case r.Outcome == AlreadyOurs && old == nil:
		adopted := Adopt(r.Node, now)
		own.Drained = &adopted
	case r.Outcome == AlreadyOurs && old.Reason == r.Reason:
		old.Confirmed = now
	case old != nil && (r.Outcome == AlreadyOurs || r.Outcome == Foreign):
		old.Touched = true
	default:
		return nil
	}
	if class == check.Hardware && !own.Drained.Touched {
		own.Drained.Class = class // a card has failed since: a person must come now
	}
	return d.KeepDrains(own)
}
