//go:build man

package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// addMan adds a command that writes the manual pages of a program into a
// directory. It is built only with the tag `man` (make man), and only there is
// cobra linked: it knows how to write such pages.
func addMan(root *Command) {
	root.AddCommand(&Command{
		Use: "man DIR", Args: ExactArgs(1),
		RunE: func(_ *Command, args []string) error {
			// A fixed date: the pages change only when the programs do.
			date := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			return doc.GenManTree(cobraOf(root), &doc.GenManHeader{
				Section: "8", Date: &date, Source: "gpuhooks", Manual: "gpuhooks",
			}, args[0])
		},
	})
}

// cobraOf is the command as cobra knows it.
func cobraOf(c *Command) *cobra.Command {
	// The exit status is a section of its own, its lines as they are.
	long := c.Long
	if text, status, ok := strings.Cut(long, "\n\nEXIT STATUS\n"); ok {
		long = text + "\n\n# EXIT STATUS\n```\n" + strings.TrimRight(status, "\n") + "\n```"
	}
	out := &cobra.Command{
		Use: c.Use, Short: c.Short, Long: long, Example: c.Example, DisableAutoGenTag: true,
		Run: func(*cobra.Command, []string) {},
	}
	out.Flags().AddGoFlagSet(&c.flags.FlagSet)
	out.PersistentFlags().AddGoFlagSet(&c.persistent.FlagSet)
	for _, s := range c.commands {
		if s.Short != "" {
			out.AddCommand(cobraOf(s))
		}
	}
	return out
}
