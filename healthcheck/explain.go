package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/xid"
)

func newExplain(env cli.Env, o *options) *cli.Command {
	return &cli.Command{
		Use:   "explain [CHECK | xid N]",
		Short: "Explain a check, a code of a drain reason, or an XID",
		Long: `Explain a check, a code of a drain reason, or an XID. Without an argument: list the checks.

EXIT STATUS
  0  explained
  2  there is no such check or number`,
		Example: "  gpu-healthcheck explain row-remap-failure\n  gpu-healthcheck explain xid 95",
		Args:    cli.MaximumNArgs(2),
		RunE: func(_ *cli.Command, args []string) error {
			c, err := cli.LoadConfig(o.config)
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := explain(&b, c, args); err != nil {
				return &cli.ExitError{Code: cli.Usage, Err: err, Hint: "gpu-healthcheck explain lists the checks"}
			}
			_, err = env.Stdout.Write(b.Bytes())
			return err
		},
	}
}

// explain takes the words as people have them at hand: a name, a code from a
// drain reason (LOST, XID95), or "xid 95".
func explain(w io.Writer, c config.Config, args []string) error {
	if len(args) == 0 {
		listChecks(w)
		return nil
	}
	word := strings.ToLower(strings.Join(args, ""))
	if digits, ok := strings.CutPrefix(word, "xid"); ok && digits != "" {
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > 9999 {
			return fmt.Errorf("explain: %q is not the number of an XID", strings.Join(args, " "))
		}
		return explainXID(w, c, n)
	}
	for _, k := range check.All() {
		if len(args) == 1 && (k.Name == word || strings.ToLower(k.Code) == word) {
			explainCheck(w, c, k)
			return nil
		}
	}
	return fmt.Errorf("explain: there is no check %q", strings.Join(args, " "))
}

func listChecks(w io.Writer) {
	t := table(w)
	fmt.Fprintln(t, "CHECK\tCODE\tTIER\tCLASS\tFAILURE\tWHAT")
	for _, k := range check.All() {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", k.Name, k.Code, k.Tier, k.Class, k.Default, k.Doc.What)
	}
	// A buffer takes everything.
	_ = t.Flush()
}

func explainCheck(w io.Writer, c config.Config, k check.Check) {
	fmt.Fprintf(w, "%s (code %s, tier %d, class %s)\n\n%s\n%s\n\nCure: %s\n\n", k.Name, k.Code, k.Tier, k.Class, k.Doc.What, k.Doc.Why, k.Doc.Cure)
	own := c.Checks[k.Name]
	t := table(w)
	for _, p := range []struct {
		key string
		own config.Policy
		def config.Policy
	}{
		{"prolog", own.Prolog, k.Default}, {"epilog", own.Epilog, k.Default}, {"healthcheck", own.HealthCheck, k.Default},
		{"on_error", own.OnError, config.PolicyIgnore},
	} {
		value, from := p.own, "configured"
		if value == config.PolicyDefault {
			value, from = p.def, "default"
		}
		fmt.Fprintf(t, "%s\t%s\t(%s)\n", p.key, value, from)
	}
	mode, from := own.Mode, "configured for this check"
	if mode == "" {
		mode, from = c.Mode, "of the file"
	}
	fmt.Fprintf(t, "mode\t%s\t(%s)\n", mode, from)
	// A buffer takes everything.
	_ = t.Flush()
}

func explainXID(w io.Writer, c config.Config, n int) error {
	site, err := siteCatalogue(c)
	if err != nil {
		return err
	}
	catalogue, err := xid.Load(site)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Paths.XID, err)
	}
	e, ok := catalogue.Lookup(n)
	if !ok {
		return fmt.Errorf("explain: XID %d is not in the catalogue", n)
	}
	j := xid.Judge(xid.Event{Kind: xid.KindXID, Code: n}, catalogue)
	fmt.Fprintf(w, "%s\n\n", xid.ExplainCode(n, catalogue))
	t := table(w)
	fmt.Fprintf(t, "category\t%s\nNVIDIA's action\t%s\nfor the node\t%s\n", e.Category, e.Action, meaning(j.Severity))
	return t.Flush()
}

func meaning(s xid.Severity) string {
	switch s {
	case xid.Fail:
		return "fails the check xid"
	case xid.Warn:
		return "a warning"
	}
	return "nothing: it stands in the job's record"
}
