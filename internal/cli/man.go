//go:build man

package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// addMan adds the hidden command that writes the manual pages of a program into
// a directory. It is built only with the tag `man` (make man): the generator
// would add half a megabyte to every hook.
func addMan(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: "man DIR", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			root.DisableAutoGenTag = true
			// A fixed date: the pages change only when the programs do.
			date := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			return doc.GenManTree(root, &doc.GenManHeader{
				Section: "8", Date: &date, Source: "gpuhooks", Manual: "gpuhooks",
			}, args[0])
		},
	})
}
