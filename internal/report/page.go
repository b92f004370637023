package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/record"
)

// width is that of a terminal nobody has made larger.
const width = 80

// Options are how a page looks.
type Options struct {
	Color bool           // ANSI colours: only on a terminal, and not where NO_COLOR is set
	Zone  *time.Location // of the times
	Name  string         // the job as it was asked for, where that is not its number: 120_3
}

// page collects the text.
type page struct {
	strings.Builder
	Options
}

// Text is the page about one job, 80 columns wide. All records must be of that
// job, and there must be one at least.
func Text(records []record.Record, o Options) string {
	j := Newest(records)
	if len(j.Records) == 0 {
		return ""
	}
	p := &page{Options: o}
	p.title("GPU Job Report")
	p.head(j)
	p.title("Overall Utilization")
	p.overall(j)
	p.title("Detailed Utilization")
	p.table(j)
	p.errors(j)
	p.notes(j)
	return p.String()
}

func (p *page) title(s string) {
	if p.Len() > 0 {
		p.WriteString("\n")
	}
	p.WriteString(strings.TrimRight(center(s, width), " ") + "\n" + strings.Repeat("=", width) + "\n")
}

// label writes a line with the colon in column 16, as jobstats does.
func (p *page) label(name, value string) {
	p.WriteString(wrap(value, fmt.Sprintf("%15s: ", name), strings.Repeat(" ", 17), width))
}

func (p *page) head(j Job) {
	r := j.Records[0]
	id := fmt.Sprint(r.Job.ID)
	if p.Name != "" && p.Name != id {
		id = fmt.Sprintf("%s (%s)", record.Clean(p.Name), id)
	}
	p.label("Job ID", id)
	p.label("User/Account", orDash(r.Job.User)+"/"+orDash(r.Job.Account))
	if r.Job.QOS != "" {
		p.label("QOS/Partition", record.Clean(r.Job.QOS)+"/"+orDash(r.Job.Partition))
	} else {
		p.label("Partition", orDash(r.Job.Partition))
	}
	p.label("Cluster", orDash(r.Cluster))
	p.label("State", p.state(j))
	p.label("Nodes", nodes(j))
	p.label("GPUs", models(j))
	start, elapsed, okStart, okElapsed := j.span()
	if okStart {
		p.label("Start Time", clock(start, p.zone()))
	}
	if okElapsed {
		p.label("Run Time", hours(elapsed))
	} else {
		p.label("Run Time", "unknown")
	}
}

func (p *page) zone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone
}

// state is the worst of the nodes', in seff's words.
func (p *page) state(j Job) string {
	worst := j.Records[0].State
	rank := []record.Word{record.Completed, record.Ended, record.Signalled, record.Failed, record.NodeLost}
	for _, r := range j.Records {
		if slices.Index(rank, r.State.Word) > slices.Index(rank, worst.Word) {
			worst = r.State
		}
	}
	switch worst.Word {
	case record.Completed:
		return "exit code 0" // completed, or cancelled: Slurm 22.05 tells the node the same
	case record.Failed:
		return p.red(fmt.Sprintf("FAILED (exit code %d)", worst.ExitCode.Or(0)))
	case record.Signalled:
		return fmt.Sprintf("ended by signal %d (cancelled, out of time, or crashed)", worst.Signal.Or(0))
	case record.NodeLost:
		return p.red("NODE LOST")
	}
	return "ended (slurmd does not tell how)"
}

func nodes(j Job) string {
	var names []string
	for _, r := range j.Records {
		names = append(names, record.Clean(r.Node))
	}
	return fmt.Sprintf("%d (%s)", max(len(names), j.nodeCount()), strings.Join(names, ","))
}

func models(j Job) string {
	var order []string
	counts := map[string]int{}
	for _, d := range j.devices() {
		name := orDash(d.Model)
		if d.MIG != nil {
			name += ", MIG " + record.Clean(d.MIG.Profile)
		}
		if counts[name] == 0 {
			order = append(order, name)
		}
		counts[name]++
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%d × %s", counts[name], name)
	}
	if len(order) == 0 {
		return "unknown"
	}
	return strings.Join(order, "; ")
}

func (p *page) overall(j Job) {
	for _, m := range []struct{ name, field string }{
		{"SM active", smActive}, {"Tensor active", tensor}, {"GPU-Util", gpuUtil},
	} {
		v := j.fold(m.field)
		p.meter(m.name, m.field, meter(v.Value, reason(j.why(m.field))), v)
	}
	used, size := j.fold(memoryMax), j.fold(memorySize)
	memory := record.Folded{Known: min(used.Known, size.Known), Of: used.Of}
	var parts float64
	for _, d := range j.devices() { // the mean of the GPUs' peaks: their sum is no peak of anything
		u, okU := d.Get(memoryMax)
		s, okS := d.Get(memorySize)
		if okU && okS && s > 0 {
			parts += min(u/s, 1)
		}
	}
	if memory.Known > 0 {
		memory.Value = gpu.Some(parts / float64(memory.Known))
	}
	p.meter("GPU memory", memoryMax, meter(memory.Value, reason(j.why(memoryMax))), memory)
	p.WriteString(fmt.Sprintf("  %-14s %s\n", "GPU energy", energyText(j)))
}

// meter writes one line; the bar of a GPU that had little to do is red.
func (p *page) meter(name, field, bar string, v record.Folded) {
	if x, ok := v.Value.Get(); ok && field == smActive && x < 0.15 {
		bar = p.red(bar)
	}
	some := ""
	if v.Known > 0 && v.Known < v.Of {
		some = fmt.Sprintf(" %d of %d", v.Known, v.Of)
	}
	p.WriteString(fmt.Sprintf("  %-14s %s%s\n", name, bar, some))
}

func energyText(j Job) string {
	e := j.fold(energy)
	v, ok := e.Value.Get()
	if !ok {
		return "unknown: " + reason(j.why(energy))
	}
	text := wattHours(v)
	for _, d := range j.devices() {
		if d.Values[energy].Has(record.Estimated) {
			text = "about " + text
			break
		}
	}
	for _, d := range j.devices() {
		if d.Values[energy].Has(record.LowerBound) {
			text = "at least " + text
			break
		}
	}
	if _, elapsed, _, okE := j.span(); okE && elapsed > 0 {
		text += fmt.Sprintf(" (%.0f W per GPU on average)", v/elapsed/float64(e.Known))
	}
	if e.Known < e.Of {
		text += fmt.Sprintf(", %d of %d GPUs", e.Known, e.Of)
	}
	return text
}

func (p *page) table(j Job) {
	row := "  %-13s%9s%8s%6s%10s%13s%9s"
	p.WriteString(fmt.Sprintf(row+"\n", "GPU", "SM active", "Tensor", "DRAM", "GPU-Util", "Memory peak", "Energy"))
	if len(j.devices()) == 0 {
		p.WriteString("  none known\n")
	}
	for i := range j.Records {
		r := &j.Records[i]
		indent := ""
		if len(j.Records) > 1 {
			p.WriteString("  " + record.Clean(r.Node) + "\n")
			indent = "  "
		}
		for k := range r.GPUs {
			d := device{&r.GPUs[k], r}
			name := indent + label(d)
			if d.MIG != nil {
				name += " " + record.Clean(d.MIG.Profile)
			}
			line := fmt.Sprintf(row, name, d.percent(smActive), d.percent(tensor), d.percent(dram), d.percent(gpuUtil), d.memory(), d.energy())
			if d.unused() {
				line += p.red(" <- unused")
			}
			p.WriteString(line + "\n")
		}
	}
}

func (d device) percent(field string) string { return percentOr(d.Get(field)) }

func (d device) memory() string {
	used, okU := d.Get(memoryMax)
	size, okS := d.Get(memorySize)
	switch {
	case !okU:
		return dash
	case !okS:
		return gigabytes(used) + "GB"
	}
	return gigabytes(used) + "/" + gigabytes(size) + "GB"
}

func (d device) energy() string {
	v, ok := d.Get(energy)
	if !ok {
		return dash
	}
	return wattHours(v)
}

func (p *page) errors(j Job) {
	events, counted := j.events(), j.counted()
	if len(events)+len(counted) == 0 {
		return
	}
	p.title("GPU Errors and Events")
	for _, h := range events[:min(len(events), maxErrors)] {
		when := "at an unknown time"
		if t, ok := h.Time.Get(); ok {
			when = t.In(p.zone()).Format("Jan 2 15:04:05")
		}
		p.WriteString(wrap(when+", "+j.where(h), "  ", "    ", width))
		what := wrap(h.what(), "    ", "      ", width)
		if h.Cause == record.CauseHardware {
			what = p.red(strings.TrimSuffix(what, "\n")) + "\n"
		}
		p.WriteString(what)
		p.WriteString(wrap(h.todo(), "    ", "    ", width))
	}
	if n := len(events) - maxErrors; n > 0 {
		p.WriteString(fmt.Sprintf("  and %s more (--json shows them)\n", plural(n, "event")))
	}
	for _, line := range counted {
		p.WriteString(wrap(line, "  ", "    ", width))
	}
}

func (p *page) notes(j Job) {
	notes, quality := Notes(j), Quality(j)
	if len(notes)+len(quality) == 0 {
		return
	}
	p.title("Notes")
	for _, n := range notes {
		p.WriteString(wrap(n.Text, "  * ", "    ", width))
	}
	for _, q := range quality {
		p.WriteString(wrap(q, "  - ", "    ", width))
	}
}

func (p *page) red(s string) string {
	if !p.Color {
		return s
	}
	return "\x1b[31m" + s + "\x1b[0m"
}

func orDash(s string) string {
	if s = record.Clean(s); s == "" {
		return dash
	}
	return s
}
