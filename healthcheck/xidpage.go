package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/xid"
)

// unsaid stands where a line says nothing.
const unsaid = "-"

// postMortem collects what a log holds. Like events are joined as they come, so
// that a storm takes no room.
type postMortem struct {
	name      string // of the log
	catalogue xid.Catalogue
	log       xid.Log
	events    xid.Collector
	lines     map[uint64]xid.Line // by Seq: how the first of its like was printed
	asks      bool                // for more than a restart of the application
}

// note remembers what the exit status is to say.
func (p *postMortem) note(l xid.Line) {
	p.asks = p.asks || xid.Judge(l.Event, p.catalogue).Action.MoreThanRestart()
}

func (p *postMortem) take(l xid.Line) error {
	p.note(l)
	if p.events.Add(l.Event) {
		if p.lines == nil {
			p.lines = map[uint64]xid.Line{}
		}
		p.lines[l.Seq] = l
	}
	return nil
}

// print writes the events in the log's order, then what to do for each card.
func (p *postMortem) print(w io.Writer) {
	events := p.events.Events()
	if len(events) == 0 {
		fmt.Fprintf(w, "%s: %s, no GPU event\n", cli.Clean(p.name), plural(p.log.Lines(), "line"))
		return
	}
	total := p.events.Dropped()
	for _, e := range events {
		total += e.Count
	}
	fmt.Fprintf(w, "%s: %s, %s of %s\n\n", cli.Clean(p.name), plural(p.log.Lines(), "line"), plural(total, "event"), plural(len(events), "kind"))
	t := table(w)
	fmt.Fprintln(t, "LINE\tTIME\tDEVICE\tEVENT\tTIMES\tPROCESS\tWHAT")
	for i, e := range events {
		l := p.lines[e.Seq]
		lines := fmt.Sprint(e.Seq)
		if e.Last > e.Seq {
			lines += fmt.Sprintf("-%d", e.Last)
		}
		row := []string{lines, l.Stamp, device(l), eventName(e), fmt.Sprint(e.Count), process(l), p.what(events, i)}
		for j := range row {
			row[j] = cmp.Or(cli.Clean(row[j]), unsaid)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	// The writer keeps its first error for Flush.
	_ = t.Flush()
	if n := p.events.Dropped(); n > 0 {
		fmt.Fprintf(w, "\n%s of other kinds are left out here: --json lists all\n", plural(n, "more event"))
	}
	p.advise(w, events)
}

// what is the event's meaning; for a channel's teardown also what came before it.
func (p *postMortem) what(events []xid.Event, i int) string {
	e := events[i]
	what := xid.Judge(e, p.catalogue).Name
	switch {
	case e.Kind == xid.KindXID && e.Code == 154:
		what = e.Text
	case e.Kind == xid.KindSXID:
		what += ": " + e.Text
	case e.Code == 45 && e.CausedBy != 0:
		what += fmt.Sprintf("; caused by XID %d", e.CausedBy)
	case e.Code == 45:
		if before, ok := xid.Cause(events, i); ok {
			what += fmt.Sprintf("; after %s on line %d", eventName(before), before.Seq)
		}
	}
	return what
}

// advise says for each device what its events ask for together, the worst first.
// What a later line has cancelled is named as such.
func (p *postMortem) advise(w io.Writer, events []xid.Event) {
	live := map[uint64]bool{}
	for _, e := range p.log.Window().Live(events) {
		live[e.Seq] = true
	}
	judged := xid.JudgeAll(events, p.catalogue)
	fmt.Fprintln(w, "\nWhat to do:")
	t := table(w)
	seen := map[target]bool{}
	for _, e := range events {
		if seen[targetOf(e)] {
			continue
		}
		seen[targetOf(e)] = true
		name := cmp.Or(cli.Clean(wholeUUID(p.lines[e.Seq])), "no address")
		for _, line := range advice(events, judged, live, targetOf(e)) {
			fmt.Fprintf(t, "  %s\t%s\n", name, line)
			name = ""
		}
	}
	_ = t.Flush()
}

// target is a GPU or an NVSwitch.
type target struct {
	nvswitch bool
	pci      string
}

func targetOf(e xid.Event) target { return target{e.Kind == xid.KindSXID, e.PCI} }

// advice is one line for each thing that a device's events ask for.
func advice(events []xid.Event, judged []xid.Judgement, live map[uint64]bool, of target) []string {
	var out []string
	why := map[string][]string{}
	for i, e := range events {
		if targetOf(e) != of {
			continue
		}
		j := judged[i]
		what := j.Action.Advice()
		switch {
		case !j.Action.MoreThanRestart() && j.Action != xid.ActionRestartApp:
			continue
		case !live[e.Seq]:
			what = "over: the driver took it back or was loaded again later in the log"
		}
		if why[what] == nil {
			out = append(out, what)
		}
		if name := eventName(e); !slices.Contains(why[what], name) {
			why[what] = append(why[what], name)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(urgency(a)-urgency(b), strings.Compare(a, b)) })
	for i, what := range out {
		out[i] = fmt.Sprintf("%s (%s)", what, strings.Join(why[what], ", "))
	}
	if len(out) == 0 {
		out = []string{"nothing"}
	}
	return out
}

// urgency orders advice: what takes the node, what takes the card, the rest.
func urgency(what string) int {
	for i, a := range []xid.Action{
		xid.ActionReboot, xid.ActionRestartVM, xid.ActionDrainReset, xid.ActionDrainP2P, xid.ActionReset, xid.ActionXID48,
		xid.ActionMechanicals, xid.ActionContact,
	} {
		if what == a.Advice() {
			return i
		}
	}
	if what == xid.ActionRestartApp.Advice() {
		return 90
	}
	if strings.HasPrefix(what, "over: ") {
		return 91
	}
	return 50
}

// whole names the GPU or NVSwitch of a line as the line did.
func whole(l xid.Line) string {
	if l.Kind == xid.KindSXID {
		return "NVSwitch " + l.Printed.PCI
	}
	return l.Printed.PCI
}

// wholeUUID adds the GPU's UUID, where the log has told it.
func wholeUUID(l xid.Line) string { return strings.TrimSpace(whole(l) + " " + l.UUID) }

// device also names the instance.
func device(l xid.Line) string {
	name := whole(l)
	if gi, ok := l.GI.Get(); ok {
		name += fmt.Sprintf(" GI %d", gi)
	}
	return name
}

func eventName(e xid.Event) string {
	switch e.Kind {
	case xid.KindXID:
		return fmt.Sprintf("XID %d", e.Code)
	case xid.KindSXID:
		return fmt.Sprintf("SXid %d", e.Code)
	}
	return string(e.Kind)
}

func process(l xid.Line) string {
	switch {
	case l.Printed.PID == "":
		return ""
	case l.Printed.Process == "":
		return "pid " + l.Printed.PID
	}
	return fmt.Sprintf("%s (%s)", l.Printed.Process, l.Printed.PID)
}
