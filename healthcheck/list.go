package main

import (
	"bytes"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
)

func newList(env cli.Env) *cli.Command {
	c := &cli.Command{
		Use:   "list",
		Short: "List the checks",
		Long: `List the checks: name, code, tier, class, what a failure leads to, and what is looked at.

EXIT STATUS
  0  listed`,
		Args: cli.NoArgs,
	}
	asJSON := c.Flags().Bool("json", false, "print JSON")
	c.RunE = func(*cli.Command, []string) error {
		if *asJSON {
			return cli.WriteJSON(env.Stdout, checkList())
		}
		var b bytes.Buffer
		listChecks(&b)
		_, err := env.Stdout.Write(b.Bytes())
		return err
	}
	return c
}

type listed struct {
	Name    string        `json:"name"`
	Code    string        `json:"code"`
	Tier    int           `json:"tier"`
	Class   check.Class   `json:"class"`
	Failure config.Policy `json:"failure"` // what it leads to by default
	What    string        `json:"what"`
	Why     string        `json:"why"`
	Cure    string        `json:"cure"`
}

func checkList() any {
	list := []listed{}
	for _, k := range check.All() {
		list = append(list, listed{k.Name, k.Code, k.Tier, k.Class, k.Default, k.Doc.What, k.Doc.Why, k.Doc.Cure})
	}
	return struct {
		Schema string   `json:"schema"`
		Checks []listed `json:"checks"`
	}{"gpuhooks.checks/1", list}
}
