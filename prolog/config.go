package main

import (
	"errors"
	"fmt"
	"os"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/node"
)

const configExit = `

EXIT STATUS
  0  the configuration can be used
  2  it cannot, or the command line is wrong`

func newConfig(env cli.Env, path *string) *cli.Command {
	c := &cli.Command{Use: "config", Short: "Examine the configuration", Args: cli.NoArgs}
	c.RunE = func(*cli.Command, []string) error {
		return &cli.ExitError{Code: cli.Usage, Err: errors.New("config: which one: check or show"), Hint: "see gpu-prolog config --help"}
	}
	c.AddCommand(
		&cli.Command{
			Use: "check", Short: "Say what is wrong with the configuration",
			Long: "Say what is wrong with the configuration and with the site's XID catalogue: file,\nline, key and what is allowed. Run it before the file goes to the nodes." + configExit,
			Args: cli.NoArgs,
			RunE: func(*cli.Command, []string) error { return checkConfig(env, *path) },
		},
		newConfigShow(env, path),
	)
	return c
}

func checkConfig(env cli.Env, path string) error {
	c, err := cli.LoadConfig(path)
	if err != nil {
		return err
	}
	if _, err := node.Catalogue(c.Paths.XID); err != nil {
		return &cli.ExitError{Code: cli.Usage, Err: err, Hint: "until it is right the built-in XID catalogue is used"}
	}
	what := "can be used"
	if _, err := os.Stat(path); err != nil {
		what = "is not there: the built-in defaults hold"
	}
	_, err = fmt.Fprintf(env.Stdout, "%s: %s\n", path, what)
	return err
}

func newConfigShow(env cli.Env, path *string) *cli.Command {
	var asJSON bool
	c := &cli.Command{
		Use: "show", Short: "Show the configuration in force, and where each value comes from",
		Long: "Show the configuration in force, and where each value comes from: the file or the\nbuilt-in default." + configExit,
		Args: cli.NoArgs,
		RunE: func(*cli.Command, []string) error { return showConfig(env, *path, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func showConfig(env cli.Env, path string, asJSON bool) error {
	c, err := cli.LoadConfig(path)
	if err != nil {
		return err
	}
	settings, err := config.Show(c, path)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.WriteJSON(env.Stdout, struct {
			Schema   string           `json:"schema"`
			Path     string           `json:"path"`
			Settings []config.Setting `json:"settings"`
		}{"gpuhooks.config/1", path, settings})
	}
	for _, s := range settings {
		origin := path
		if s.Default {
			origin = "default"
		}
		if _, err := fmt.Fprintf(env.Stdout, "%-50s # %s\n", s, origin); err != nil {
			return err
		}
	}
	return nil
}
