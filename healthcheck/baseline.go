package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"gpuhooks/internal/baseline"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

func newBaseline(env cli.Env, o *options) *cli.Command {
	c := &cli.Command{
		Use:   "baseline",
		Short: "Learn what a node is expected to have, or compare a node with it",
		Long: `Learn what a node is expected to have, or compare a node with it.

A baseline is a TOML file, /var/lib/gpuhooks/baseline.toml unless [paths] baseline
says otherwise: which cards, links, limits, settings and versions a good node has.
The checks judge by it what they cannot judge alone. It is never learnt unasked:
learn prints it, and a person installs it, owned by root.

EXIT STATUS
  0  the usage was printed`,
	}
	c.AddCommand(newLearn(env, o), newCompare(env, o))
	return c
}

func newLearn(env cli.Env, o *options) *cli.Command {
	return &cli.Command{
		Use:   "learn [FILE …]",
		Short: "Print a baseline made from this node, or from several",
		Long: `Print a baseline made from this node, or from several nodes' answers: each FILE is
what gpu-healthcheck --json printed there ("-" is the standard input). What more
than half of the nodes, or of the cards of one name, have is expected; who differs
is named on the standard error, and the exit status is 1. What has no majority, or
the MIG mode of cards that are not all divided alike, is left out. Learn only from nodes that you know to be good, and read what was learnt.

EXIT STATUS
  0  printed, and all are alike
  1  printed, and some differ from the others
  2  usage or configuration, or a FILE is not such an answer
  3  a node has not answered for all of its GPUs: nothing was learnt`,
		Example: `  gpu-healthcheck baseline learn >baseline.toml
  for n in n1 n2 n3; do ssh $n gpu-healthcheck --json >$n.json; done
  gpu-healthcheck baseline learn n1.json n2.json n3.json >baseline.toml`,
		Args: func(*cli.Command, []string) error { return nil },
		RunE: func(_ *cli.Command, files []string) error { return runLearn(env, *o, files) },
	}
}

func runLearn(env cli.Env, o options, files []string) error {
	var nodes []baseline.Named
	for _, f := range files {
		n, err := readAnswer(env, f)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	if len(files) == 0 {
		c, err := cli.LoadConfig(o.config)
		if err != nil {
			return err
		}
		n, err := answer(env, c, o)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	b, outliers := baseline.Learn(nodes)
	var text bytes.Buffer
	if err := baseline.Write(&text, b); err != nil {
		return err
	}
	if _, err := env.Stdout.Write(text.Bytes()); err != nil {
		return err
	}
	for _, out := range outliers {
		fmt.Fprintln(env.Stderr, "# "+cli.Clean(out.String()))
	}
	if len(outliers) > 0 {
		return cli.Exit(cli.Failed)
	}
	return nil
}

// answer looks at this node. A part of it is no node to learn from, nor to
// compare.
func answer(env cli.Env, c config.Config, o options) (baseline.Named, error) {
	o.tier = 1
	l := look(env, c, o)
	return answered(l.name, l.result())
}

// answered says that a node answered for all of its cards.
func answered(name string, r result) (baseline.Named, error) {
	blind := func(why string) error {
		return &cli.ExitError{Code: cli.Blind, Err: fmt.Errorf("%s: %s", name, why), Hint: "see gpu-healthcheck"}
	}
	count, known := r.Driver.Count.Get()
	switch {
	case r.Verdict.Answer != gpu.AnswerWhole || !known || r.Verdict.Tier < 1:
		return baseline.Named{}, blind("the driver did not answer")
	case count == 0 || count != len(r.GPUs):
		return baseline.Named{}, blind(fmt.Sprintf("%d of %d GPUs answered", len(r.GPUs), count))
	}
	for i := range r.GPUs {
		if g := &r.GPUs[i]; !g.Complete || g.Lost() {
			return baseline.Named{}, blind(fmt.Sprintf("GPU %d did not answer whole", g.Index))
		}
	}
	return baseline.Named{Name: name, Node: gpu.Node{Time: r.Time, BootID: r.BootID, Driver: r.Driver, GPUs: r.GPUs, Host: r.Host}}, nil
}

// maxAnswer bounds what is read of a node's answer.
const maxAnswer = 64 << 20

// readAnswer reads what gpu-healthcheck --json printed on another node.
func readAnswer(env cli.Env, file string) (baseline.Named, error) {
	usage := func(format string, args ...any) error {
		return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("%s: "+format, append([]any{file}, args...)...)}
	}
	in, name := env.Stdin, file
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return baseline.Named{}, &cli.ExitError{Code: cli.Usage, Err: err}
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxAnswer))
	if err != nil {
		return baseline.Named{}, usage("%v", err)
	}
	var r result
	if err := json.Unmarshal(b, &r); err != nil {
		return baseline.Named{}, usage("%v", err)
	}
	if r.Schema != resultSchema {
		return baseline.Named{}, usage("schema %q is not %s, which gpu-healthcheck --json prints", r.Schema, resultSchema)
	}
	if r.Node != "" {
		name = r.Node
	}
	return answered(name, r)
}

func newCompare(env cli.Env, o *options) *cli.Command {
	var file string
	var asJSON bool
	c := &cli.Command{
		Use:   "check",
		Short: "Compare this node with its baseline",
		Long: `Compare this node with its baseline, and print in what it differs.

EXIT STATUS
  0  the node is as expected
  1  it differs
  2  usage or configuration, or there is no such baseline
  3  the node has not answered for all of its GPUs`,
		Example: "  gpu-healthcheck baseline check --baseline ./baseline.toml",
		RunE:    func(*cli.Command, []string) error { return runCompare(env, *o, file, asJSON) },
	}
	c.Flags().StringVar(&file, "baseline", "", "the baseline `FILE`; without it the configured one")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// comparison is what baseline check --json prints.
type comparison struct {
	Schema      string                `json:"schema"`
	Node        string                `json:"node"`
	Baseline    string                `json:"baseline"`
	Differences []baseline.Difference `json:"differences"`
}

func runCompare(env cli.Env, o options, file string, asJSON bool) error {
	c, err := cli.LoadConfig(o.config)
	if err != nil {
		return err
	}
	if file == "" {
		file = c.Paths.Baseline
	}
	b, err := baseline.Load(file)
	if err != nil {
		return &cli.ExitError{Code: cli.Usage, Err: err, Hint: "gpu-healthcheck baseline learn prints one"}
	}
	n, err := answer(env, c, o)
	if err != nil {
		return err
	}
	differences := append([]baseline.Difference{}, baseline.Compare(b, &n.Node)...)
	var out bytes.Buffer
	if asJSON {
		err = cli.WriteJSON(&out, comparison{"gpuhooks.baseline-check/1", n.Name, file, differences})
	} else {
		err = printDifferences(&out, n.Name, differences)
	}
	if err != nil {
		return err
	}
	if _, err := env.Stdout.Write(out.Bytes()); err != nil {
		return err
	}
	if len(differences) > 0 {
		return cli.Exit(cli.Failed)
	}
	return nil
}

func printDifferences(w io.Writer, name string, all []baseline.Difference) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(w, "%s is as expected\n", cli.Clean(name))
		return err
	}
	t := table(w)
	fmt.Fprintln(t, "WHO\tWHAT\tEXPECTED\tFOUND")
	for _, d := range all {
		who, have := name, d.Have
		if d.GPU != nil {
			who = verdict.Name(*d.GPU)
		}
		if have == "" {
			have = unknown
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", cli.Clean(who), cli.Clean(d.Label), cli.Clean(d.Want), cli.Clean(have))
	}
	return t.Flush()
}
