package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
)

func newExplain(env cli.Env, o *options) *cli.Command {
	cmd := &cli.Command{
		Use:   "explain [CHECK | xid N | sxid N]",
		Short: "Explain a check, a code of a drain reason, or an XID",
		Long: `Explain a check, a code of a drain reason, an XID or an NVSwitch's SXid: what it
means, NVIDIA's action, what gpuhooks does about it here, and what to do. Without
an argument: list the checks.

EXIT STATUS
  0  explained
  2  there is no such check or number, or the site's XID catalogue is broken`,
		Example: "  gpu-healthcheck explain row-remap-failure\n  gpu-healthcheck explain xid 95\n  gpu-healthcheck explain sxid 20034",
		Args:    cli.MaximumNArgs(2),
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON (of a number)")
	cmd.RunE = func(_ *cli.Command, args []string) error {
		c, err := cli.LoadConfig(o.config)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := explain(&b, c, args, *asJSON); err != nil {
			return &cli.ExitError{Code: cli.Usage, Err: err, Hint: "gpu-healthcheck explain lists the checks"}
		}
		_, err = env.Stdout.Write(b.Bytes())
		return err
	}
	return cmd
}

// explain takes the words as people have them at hand: a name, a code from a
// drain reason (LOST, XID95), "xid 95", "sxid 20034" or a number alone.
func explain(w io.Writer, c config.Config, args []string, asJSON bool) error {
	if len(args) == 0 {
		listChecks(w)
		return nil
	}
	word := strings.ToLower(strings.Join(args, ""))
	if kind, code, ok := numbered(word); ok {
		return explainCode(w, c, kind, code, asJSON)
	}
	if asJSON {
		return errors.New("explain: --json is for an XID or SXid; gpu-healthcheck --json has the checks")
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
