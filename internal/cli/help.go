package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Help prints what --help says on stdout.
func (c *Command) Help() error {
	var b strings.Builder
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	text, status, hasStatus := strings.Cut(long, "\n\nEXIT STATUS\n")
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", text, c.usageLine())
	if len(c.commands) > 0 {
		fmt.Fprintf(&b, "  %s COMMAND\n", c.CommandPath())
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	if len(c.commands) > 0 {
		fmt.Fprintf(&b, "\nCommands:\n%s", c.listCommands())
	}
	fmt.Fprintf(&b, "\nFlags:\n%s", c.listFlags())
	if hasStatus {
		fmt.Fprintf(&b, "\nEXIT STATUS\n%s\n", strings.TrimRight(status, "\n"))
	}
	_, err := c.output().Write([]byte(b.String()))
	return err
}

// output is the program's stdout.
func (c *Command) output() io.Writer {
	for c.parent != nil {
		c = c.parent
	}
	return c.out
}

// usageLine is the command with its arguments.
func (c *Command) usageLine() string {
	s := c.CommandPath() + " [flags]"
	if _, args, ok := strings.Cut(c.Use, " "); ok {
		s += " " + args
	}
	return s
}

func (c *Command) listCommands() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range c.commands {
		fmt.Fprintf(w, "  %s\t%s\n", s.Name(), s.Short)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

func (c *Command) listFlags() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	c.flagSet().VisitAll(func(f *flag.Flag) {
		name, usage := flag.UnquoteUsage(f)
		if name != "" {
			name = " " + name
		}
		if f.DefValue != "" && f.DefValue != "false" {
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(w, "  --%s%s\t%s\n", f.Name, name, usage)
	})
	fmt.Fprintf(w, "  --help\tsay this\n")
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}
