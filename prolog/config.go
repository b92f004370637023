package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
)

const configExit = `

EXIT STATUS
  0  the configuration can be used
  2  it cannot, or the command line is wrong`

func newConfig(env cli.Env, path *string) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Examine the configuration", Args: cobra.NoArgs}
	c.RunE = func(*cobra.Command, []string) error {
		return &cli.ExitError{Code: cli.Usage, Err: errors.New("config: which one: check or show"), Hint: "see gpu-prolog config --help"}
	}
	c.AddCommand(
		&cobra.Command{
			Use: "check", Short: "Say what is wrong with the configuration",
			Long: "Say what is wrong with the configuration: file, line, key and what is allowed.\nRun it before the file goes to the nodes." + configExit,
			Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return checkConfig(env, *path) },
		},
		newConfigShow(env, path),
	)
	return c
}

// loadConfig reads the file as people want it read: everything odd is an error.
// The file that nobody named may be missing.
func loadConfig(path string) (config.Config, error) {
	c, err := config.Load(path, path != config.Path)
	if err == nil {
		var names []string
		for _, k := range check.All() {
			names = append(names, k.Name)
		}
		err = errors.Join(c.UnknownChecks(path, names)...)
	}
	if err != nil {
		return c, &cli.ExitError{Code: cli.Usage, Err: err}
	}
	return c, nil
}

func checkConfig(env cli.Env, path string) error {
	if _, err := loadConfig(path); err != nil {
		return err
	}
	what := "can be used"
	if _, err := os.Stat(path); err != nil {
		what = "is not there: the built-in defaults hold"
	}
	_, err := fmt.Fprintf(env.Stdout, "%s: %s\n", path, what)
	return err
}

func newConfigShow(env cli.Env, path *string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show", Short: "Show the configuration in force, and where each value comes from",
		Long: "Show the configuration in force, and where each value comes from: the file or the\nbuilt-in default." + configExit,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return showConfig(env, *path, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func showConfig(env cli.Env, path string, asJSON bool) error {
	c, err := loadConfig(path)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	e := toml.NewEncoder(&text)
	e.Indent = ""
	if err := e.Encode(c); err != nil {
		return err
	}
	inFile, err := definedIn(path)
	if err != nil {
		return err
	}
	if asJSON {
		return showJSON(env, path, text.String(), inFile)
	}
	table := ""
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(line, "[]") + "."
		}
		if key, _, ok := strings.Cut(line, " = "); ok {
			line = fmt.Sprintf("%-50s # %s", line, origin(inFile, table+key, path))
		}
		if _, err := fmt.Fprintln(env.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func origin(inFile map[string]bool, key, path string) string {
	if inFile[key] {
		return path
	}
	return "default"
}

// definedIn lists the keys that the file sets.
func definedIn(path string) (map[string]bool, error) {
	var into map[string]any
	md, err := toml.DecodeFile(path, &into)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	keys := map[string]bool{}
	for _, k := range md.Keys() {
		keys[k.String()] = true
	}
	return keys, err
}

func showJSON(env cli.Env, path, text string, inFile map[string]bool) error {
	var values map[string]any
	md, err := toml.Decode(text, &values)
	if err != nil {
		return err
	}
	origins := map[string]string{}
	for _, k := range md.Keys() {
		if md.Type(k...) != "Hash" {
			origins[k.String()] = origin(inFile, k.String(), path)
		}
	}
	return cli.WriteJSON(env.Stdout, struct {
		Schema string            `json:"schema"`
		Path   string            `json:"path"`
		Config map[string]any    `json:"config"`
		Origin map[string]string `json:"origin"`
	}{"gpuhooks.config/1", path, values, origins})
}
