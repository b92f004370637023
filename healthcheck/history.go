package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/node"
)

func newHistory(env cli.Env, o *options) *cli.Command {
	var gpus []string
	var asJSON bool
	c := &cli.Command{
		Use:   "history",
		Short: "Show the faults of each card over time",
		Long: `Show the faults of each card over time, the card with the most first. A fault is a
check of class hardware that failed; until the card was good again, or was
acknowledged, it is one and the same. A card is followed by its serial number, else by
its UUID, into whichever slot it is put. With 3 faults in 30 days it is a lemon: a
card that returns again and again.

With --gpu: the lines about that card, oldest first.

EXIT STATUS
  0  shown
  2  usage or configuration
  3  the history could not be read`,
		Example: "  gpu-healthcheck history\n  gpu-healthcheck history --gpu GPU-4b0c",
		Args:    cli.NoArgs,
		RunE: func(*cli.Command, []string) error {
			c, err := cli.LoadConfig(o.config)
			if err != nil {
				return err
			}
			faults, err := (node.Durable{Dir: c.Paths.State}).Faults()
			if err != nil {
				return err
			}
			h := history{Schema: "gpuhooks.history/1", Cards: node.Cards(faults, env.Now()), Faults: faults}
			if len(gpus) > 0 {
				h = h.only(gpus)
			}
			return h.write(env.Stdout, asJSON, len(gpus) > 0)
		},
	}
	c.Flags().StringArrayVar(&gpus, "gpu", nil, "only this `GPU`: index, UUID (or its beginning), serial number or PCI address; may be repeated")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// history is what --json prints.
type history struct {
	Schema string       `json:"schema"`
	Cards  []node.Card  `json:"cards"`  // the worst first
	Faults []node.Fault `json:"faults"` // oldest first
}

// only leaves the cards that a person names. A card may be gone from the node, so
// that it is looked for in the history alone.
func (h history) only(names []string) history {
	out := history{Schema: h.Schema}
	for _, c := range h.Cards {
		serial := c.GPU.Serial.Or("")
		if slices.ContainsFunc(names, func(n string) bool { return n == serial || called(&gpu.GPU{Identity: c.GPU}, n) }) {
			out.Cards = append(out.Cards, c)
		}
	}
	for _, f := range h.Faults {
		if f.GPU != nil && slices.ContainsFunc(out.Cards, func(c node.Card) bool { return c.Is(*f.GPU) }) {
			out.Faults = append(out.Faults, f)
		}
	}
	return out
}

func (h history) write(w io.Writer, asJSON, lines bool) error {
	var b bytes.Buffer
	if asJSON {
		h.Cards, h.Faults = append([]node.Card{}, h.Cards...), append([]node.Fault{}, h.Faults...) // never null
		if err := cli.WriteJSON(&b, h); err != nil {
			return err
		}
	} else if h.cards(&b); lines {
		fmt.Fprintln(&b)
		h.lines(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// cards is one row a card.
func (h history) cards(w io.Writer) {
	if len(h.Cards) == 0 {
		fmt.Fprintln(w, "no faults of GPUs are on record")
		return
	}
	t := table(w)
	fmt.Fprintln(t, "SERIAL\tUUID\tNAME\tPCI\tFAULTS\t30 DAYS\tDRAINS\tLAST\tCODES\tNOTE")
	for _, c := range h.Cards {
		row := []string{
			c.GPU.Serial.Or(unknown), c.GPU.UUID, c.GPU.Name, strings.Join(c.Slots, ","), fmt.Sprint(c.Episodes), fmt.Sprint(c.Recent),
			fmt.Sprint(c.Drains), day(c.Last), codes(c.Codes), note(c),
		}
		for i := range row {
			row[i] = cli.Clean(row[i])
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	// A buffer takes everything.
	_ = t.Flush()
}

// lines is what was written down, one line each.
func (h history) lines(w io.Writer) {
	for _, f := range h.Faults {
		s := fmt.Sprintf("%s %s: %s %s", f.Time.UTC().Format(time.RFC3339), f.Kind, f.Code, f.Text)
		if f.Kind == node.FaultAck {
			s = fmt.Sprintf("%s %s by %s: %s", f.Time.UTC().Format(time.RFC3339), f.Kind, f.Who, cmp.Or(f.Text, "no reason given"))
		}
		fmt.Fprintln(w, cli.Clean(s))
	}
}

func day(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.UTC().Format(time.DateOnly)
}

// codes are what was found, the most frequent first: "XID95 3, LOST 1".
func codes(n map[string]int) string {
	names := slices.Sorted(maps.Keys(n))
	sort.SliceStable(names, func(i, j int) bool { return n[names[i]] > n[names[j]] })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, n[name])
	}
	return strings.Join(names, ", ")
}

func note(c node.Card) string {
	switch {
	case c.Lemon() && c.Open:
		return "lemon, not acknowledged"
	case c.Lemon():
		return "lemon"
	case c.Open:
		return "not acknowledged"
	}
	return ""
}
