package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/node"
	"gpuhooks/internal/xid"
)

// numbered reads "xid95", "sxid20034" or "95".
func numbered(word string) (kind xid.Kind, code string, ok bool) {
	if n, found := strings.CutPrefix(word, "sxid"); found {
		return xid.KindSXID, n, true
	}
	n, named := strings.CutPrefix(word, "xid")
	if named && n != "" || !named && strings.Trim(n, "0123456789") == "" {
		return xid.KindXID, n, true
	}
	return "", "", false // "xid" alone is a check
}

// codeExplanation is what there is to say of a number; --json prints it.
type codeExplanation struct {
	Schema   string                   `json:"schema"`
	Kind     xid.Kind                 `json:"kind"`
	Code     int                      `json:"code"`
	Name     string                   `json:"name"`
	Category string                   `json:"category"`
	Action   string                   `json:"action"` // NVIDIA's bucket
	Advice   string                   `json:"advice"`
	Severity xid.Severity             `json:"severity"` // for the node
	Source   string                   `json:"source"`   // built-in, or the site's file
	Check    string                   `json:"check"`
	Hooks    map[string]config.Policy `json:"hooks"` // what each hook does
	Mode     config.Mode              `json:"mode"`
	Steps    []string                 `json:"steps"`
}

func explainCode(w io.Writer, c config.Config, kind xid.Kind, digits string, asJSON bool) error {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n < 1 || n > 99999 {
		return fmt.Errorf("explain: %q is not a number of the catalogue", digits)
	}
	catalogue, err := node.Catalogue(c.Paths.XID)
	if err != nil {
		return err
	}
	x, ok := describe(c, catalogue, kind, int(n))
	if !ok {
		return fmt.Errorf("explain: %s %d is not in the catalogue", x.label(), n)
	}
	if asJSON {
		return cli.WriteJSON(w, x)
	}
	x.print(w)
	return nil
}

// describe gathers what the catalogue, the policy and the workflows say.
func describe(c config.Config, catalogue xid.Catalogue, kind xid.Kind, n int) (codeExplanation, bool) {
	x := codeExplanation{Schema: "gpuhooks.explain/1", Kind: kind, Code: n, Source: "built-in", Check: "xid"}
	event, entry, known := xid.Event{Kind: kind, Code: n}, xid.Entry{}, false
	if kind == xid.KindSXID {
		// Hundreds of numbers are in use; their lines say how bad they are.
		event.Switch = xid.SwitchFatal
		entry, _ = catalogue.LookupSXID(n)
		entry.Code, known = n, true
	} else if entry, known = catalogue.Lookup(n); !known {
		return x, false
	}
	j := xid.Judge(event, catalogue)
	x.Name, x.Category, x.Action, x.Advice, x.Severity = j.Name, j.Category, j.Action.Bucket(), j.Action.Advice(), j.Severity
	if entry.Site {
		x.Source = c.Paths.XID
	}
	if kind == xid.KindXID && n == 79 {
		x.Check = "gpu-lost"
	}
	x.Steps = xid.Steps(kind, entry)
	x.policy(c)
	return x, true
}

// policy says what each hook does about an event of that severity.
func (x *codeExplanation) policy(c config.Config) {
	own := c.Checks[x.Check]
	x.Mode = cmp.Or(own.Mode, c.Mode)
	x.Hooks = map[string]config.Policy{}
	byDefault := config.PolicyDrain
	for _, k := range check.All() {
		if k.Name == x.Check {
			byDefault = cmp.Or(k.Default, byDefault)
		}
	}
	for hook, p := range map[string]config.Policy{"prolog": own.Prolog, "epilog": own.Epilog, "healthcheck": own.HealthCheck} {
		p = cmp.Or(p, byDefault)
		switch {
		case x.Severity == xid.Info:
			p = config.PolicyIgnore
		case x.Severity == xid.Warn && p == config.PolicyDrain:
			p = config.PolicyWarn
		}
		x.Hooks[hook] = p
	}
}

func (x codeExplanation) label() string {
	if x.Kind == xid.KindSXID {
		return "SXid"
	}
	return "XID"
}

func (x codeExplanation) print(w io.Writer) {
	fmt.Fprintf(w, "%s %d: %s; %s\n\n", x.label(), x.Code, x.Name, x.Advice)
	t := table(w)
	fmt.Fprintf(t, "category\t%s\n", cmp.Or(x.Category, unsaid))
	fmt.Fprintf(t, "NVIDIA's action\t%s\n", x.Action)
	fmt.Fprintf(t, "for the node\t%s\n", x.means())
	if x.Severity != xid.Info {
		fmt.Fprintf(t, "in the hooks\tprolog %s, epilog %s, healthcheck %s", x.Hooks["prolog"], x.Hooks["epilog"], x.Hooks["healthcheck"])
		if x.Mode == config.Observe {
			fmt.Fprint(t, " (mode observe: they only say what they would do)")
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintf(t, "source\t%s\n", x.Source)
	// A buffer takes everything.
	_ = t.Flush()
	fmt.Fprintln(w, "\nWhat to do:")
	for i, s := range x.Steps {
		fmt.Fprintf(w, "  %d. %s\n", i+1, s)
	}
}

func (x codeExplanation) means() string {
	switch x.Severity {
	case xid.Fail:
		return "fails the check " + x.Check
	case xid.Warn:
		return "a warning of the check " + x.Check
	}
	return "nothing: it stands in the job's record"
}
