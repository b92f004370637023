package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// flagged prints what it was given.
func flagged(env Env) *Command {
	var config, format string
	var dirs []string
	var tier int
	root := &Command{Use: "gpu-tool", Short: "Do things", RunE: func(c *Command, args []string) error {
		_, err := fmt.Fprintln(env.Stdout, "root", config, tier, c.Flags().Changed("config"), args)
		return err
	}}
	root.PersistentFlags().StringVar(&config, "config", "/etc/x", "the configuration `FILE`")
	root.Flags().IntVar(&tier, "tier", 1, "highest `TIER`")
	report := &Command{
		Use: "report JOBID", Short: "Show a job", Args: ExactArgs(1), Long: "Show a job.\n\nEXIT STATUS\n  0  shown", Example: "  gpu-tool report 7",
		RunE: func(c *Command, args []string) error {
			_, err := fmt.Fprintln(env.Stdout, "report", config, format, dirs, c.Flags().Changed("config"), args)
			return err
		},
	}
	report.Flags().StringArrayVar(&dirs, "dir", nil, "read this `DIR`; may be repeated")
	report.Flags().StringVar(&format, "format", "text", "`FORM` of the report")
	root.AddCommand(report)
	return root
}

func TestFlags(t *testing.T) {
	for _, c := range []struct{ args, out, err string }{
		{"", "root /etc/x 1 false []\n", ""},
		{"--config f --tier=0", "root f 0 true []\n", ""},
		{"--config f report 7", "report f text [] true [7]\n", ""},
		{"report 7 --format json --dir a --dir b", "report /etc/x json [a b] false [7]\n", ""},
		{"report --config f -- --7", "report f text [] true [--7]\n", ""},
		{"report", "", "accepts 1 arg(s), received 0"},
		{"report 7 8", "", "accepts 1 arg(s), received 2"},
		{"report 7 --tier 1", "", "unknown flag: --tier"},
		{"--tier x", "", "invalid value \"x\" for flag --tier: parse error"},
		{"--config", "", "flag needs an argument: --config"},
		{"reports 7", "", "unknown command \"reports\" for \"gpu-tool\""},
	} {
		var out, err bytes.Buffer
		code := Run(Env{Program: "gpu-tool", Args: strings.Fields(c.args), Stdout: &out, Stderr: &err}, flagged)
		if out.String() != c.out || !strings.Contains(err.String(), c.err) || (code == Usage) != (c.err != "") {
			t.Errorf("%q: exit %d\n%s%s", c.args, code, out.String(), err.String())
		}
	}
}

func TestHelp(t *testing.T) {
	for args, want := range map[string]string{
		"--help": `Do things.

Usage:
  gpu-tool [flags]
  gpu-tool COMMAND

Commands:
  report  Show a job

Flags:
  --config FILE  the configuration FILE (default /etc/x)
  --tier TIER    highest TIER (default 1)
  --version      print the version
  --help         say this
`,
		"report -h": `Show a job.

Usage:
  gpu-tool report [flags] JOBID

Examples:
  gpu-tool report 7

Flags:
  --config FILE  the configuration FILE (default /etc/x)
  --dir DIR      read this DIR; may be repeated
  --format FORM  FORM of the report (default text)
  --help         say this

EXIT STATUS
  0  shown
`,
	} {
		var out, err bytes.Buffer
		code := Run(Env{Program: "gpu-tool", Args: strings.Fields(args), Stdout: &out, Stderr: &err}, flagged)
		if code != OK || err.Len() > 0 || !slices.Equal(strings.Split(out.String(), "\n"), strings.Split(want, "\n")) {
			t.Errorf("%s: exit %d, stderr %q\n%s", args, code, err.String(), out.String())
		}
	}
}
