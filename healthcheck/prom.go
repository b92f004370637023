package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/node"
	"gpuhooks/internal/verdict"
)

// exposition is Prometheus' text format, version 0.0.4.
type exposition struct{ bytes.Buffer }

// family begins a metric. All of ours are gauges: they tell of the last look.
func (e *exposition) family(name, help string) {
	fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

// sample adds a value with labels: name, value, name, value, …
func (e *exposition) sample(name string, v float64, labels ...string) {
	e.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(e, `%s%s="%s"`, sep, labels[i], escape(labels[i+1]))
	}
	if len(labels) > 0 {
		e.WriteByte('}')
	}
	e.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

// escape makes a label's value safe; names of cards come from the driver.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(cli.Clean(s))
}

// one is 1 for what is so, else 0.
func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// prometheus is the look as metrics. Their labels are bounded: by the checks, by
// the cards of the node, and by what a finding may be called.
func (l looked) prometheus(braked bool, history []node.Card) []byte {
	var e exposition
	v, n := l.verdict, &l.look.Reading.Node
	e.family("gpuhooks_build_info", "The version that has looked; always 1.")
	e.sample("gpuhooks_build_info", 1, "version", cli.Version())
	e.family("gpuhooks_look_timestamp_seconds", "When the node was last looked at, since 1970.")
	e.sample("gpuhooks_look_timestamp_seconds", float64(v.Time.UnixMilli())/1000)
	e.family("gpuhooks_look_duration_seconds", "How long the driver took to answer.")
	e.sample("gpuhooks_look_duration_seconds", l.look.Reading.Elapsed.Seconds())
	e.family("gpuhooks_driver_answered", "1 if the driver has answered for every GPU.")
	e.sample("gpuhooks_driver_answered", one(v.Answer == gpu.AnswerWhole))
	e.family("gpuhooks_gpus", "GPUs that the driver lists.")
	e.sample("gpuhooks_gpus", float64(len(n.GPUs)))
	e.family("gpuhooks_verdict_action", "What the verdict asks for: 1 for the action that it is.")
	for _, a := range []verdict.Action{verdict.None, verdict.WouldDrain, verdict.Drain} {
		e.sample("gpuhooks_verdict_action", one(v.Action == a), "action", string(a))
	}
	e.family("gpuhooks_drain_braked", "1 if the node is to be drained and too many others are already.")
	e.sample("gpuhooks_drain_braked", one(braked))
	e.checks(v)
	e.gpus(n.GPUs, v)
	e.family("gpuhooks_gpu_recent_faults", "Faults of the card in the last 30 days, from a good look to a failed one: from 3 on it is a lemon.")
	for _, g := range n.GPUs {
		recent := 0
		for _, c := range history {
			if c.Is(g.Identity) {
				recent = c.Recent
			}
		}
		e.sample("gpuhooks_gpu_recent_faults", float64(recent), "gpu", strconv.Itoa(g.Index), "uuid", g.UUID)
	}
	return e.Bytes()
}

const results = "0 pass, 1 warn, 2 could not look, 3 fail"

func (e *exposition) checks(v verdict.Verdict) {
	e.family("gpuhooks_check_result", "What each check that applies found at worst: "+results+".")
	for _, c := range v.Checks {
		if r, ok := verdict.Number(c.Outcome); ok {
			e.sample("gpuhooks_check_result", float64(r), "check", c.Check)
		}
	}
	e.family("gpuhooks_check_duration_seconds", "How long each check that applies took, without the reading.")
	for _, c := range v.Checks {
		if _, ok := verdict.Number(c.Outcome); ok {
			e.sample("gpuhooks_check_duration_seconds", c.Seconds, "check", c.Check)
		}
	}
}

func (e *exposition) gpus(gpus []gpu.GPU, v verdict.Verdict) {
	e.family("gpuhooks_gpu_info", "The cards; always 1.")
	for _, g := range gpus {
		e.sample("gpuhooks_gpu_info", 1, "gpu", strconv.Itoa(g.Index), "uuid", g.UUID, "pci", g.PCI, "minor", minorOf(g),
			"model", g.Name, "serial", g.Serial.Or(""))
	}
	e.family("gpuhooks_gpu_up", "1 if the card is reachable and answered in time.")
	for _, g := range gpus {
		e.sample("gpuhooks_gpu_up", one(g.Complete && !g.Lost()), "gpu", strconv.Itoa(g.Index), "uuid", g.UUID)
	}
	e.family("gpuhooks_gpu_result", "The worst finding about each card: "+results+".")
	for i := range gpus {
		g := &gpus[i]
		r, _ := verdict.Number(outcome(g, v))
		e.sample("gpuhooks_gpu_result", float64(r), "gpu", strconv.Itoa(g.Index), "uuid", g.UUID)
	}
	e.family("gpuhooks_finding", "What is not well: "+results+"; uuid is empty where it is the node.")
	seen := map[string]bool{}
	for _, f := range v.Findings {
		uuid := ""
		if f.GPU != nil {
			uuid = f.GPU.UUID
		}
		r, ok := verdict.Number(f.Outcome)
		if key := f.Check + " " + f.Code + " " + uuid; ok && !seen[key] { // worst first
			seen[key] = true
			e.sample("gpuhooks_finding", float64(r), "check", f.Check, "code", f.Code, "class", string(f.Class), "uuid", uuid)
		}
	}
}

// minorOf is the N of /dev/nvidiaN; "" when it is not known.
func minorOf(g gpu.GPU) string {
	if m, ok := g.Minor.Get(); ok {
		return strconv.Itoa(m)
	}
	return ""
}
