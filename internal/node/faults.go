package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

// maxFaults bounds the history of a node; the oldest go.
const maxFaults = 2000

// FaultKind is what happened to a card.
type FaultKind string

// The kinds.
const (
	FaultFound FaultKind = "fault" // a check of class hardware failed
	FaultDrain FaultKind = "drain" // the node was drained because of it
	FaultAck   FaultKind = "ack"   // a person says that it is repaired
)

// Fault is one line of faults.jsonl.
type Fault struct {
	Time  time.Time     `json:"time"` // of the look, UTC
	Boot  string        `json:"boot_id"`
	Kind  FaultKind     `json:"kind"`
	Opens bool          `json:"opens,omitempty"` // the card had been good, or a person had said so: an episode begins
	GPU   *gpu.Identity `json:"gpu,omitempty"`   // nil is the node
	Check string        `json:"check,omitempty"`
	Code  string        `json:"code,omitempty"`
	Class check.Class   `json:"class,omitempty"`
	Text  string        `json:"text,omitempty"`
	Who   string        `json:"who,omitempty"` // of an ack
}

// faultsWait is how long a hook waits for another's line in the history.
const faultsWait = 500 * time.Millisecond

// Faults reads the history, oldest first. Lines that are broken are left out.
func (d Durable) Faults() ([]Fault, error) {
	b, err := readFile(d.path("faults.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Fault
	for line := range bytes.Lines(b) {
		var f Fault
		if json.Unmarshal(line, &f) == nil && !f.Time.IsZero() {
			out = append(out, f)
		}
	}
	return out, nil
}

// changeFaults adds to the history what more makes of it.
func (d Durable) changeFaults(more func([]Fault) []Fault) ([]Fault, error) {
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return nil, err
	}
	release, err := lock(d.path("faults.lock"), faultsWait, nil)
	if err != nil {
		return nil, err
	}
	defer release()
	all, err := d.Faults()
	if err != nil {
		return nil, err
	}
	added := more(all)
	if len(added) == 0 {
		return all, nil
	}
	all = append(all, added...)
	all = all[max(0, len(all)-maxFaults):]
	var b bytes.Buffer
	for _, f := range all {
		line, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		b.Write(append(line, '\n'))
	}
	return all, d.keep("faults.jsonl", b.Bytes())
}

// RecordFaults writes down what failed of a verdict, once an episode, and the
// drain that it led to. The texts name cards that return again and again.
func (d Durable) RecordFaults(m Memory, v verdict.Verdict, drained bool) (texts []string, err error) {
	var added []Fault
	all, err := d.changeFaults(func(before []Fault) []Fault {
		for _, f := range v.Findings {
			kind := FaultFound
			if drained && f.Acts() {
				kind = FaultDrain
			}
			if f.Outcome != check.Fail || kind == FaultFound && (f.Class != check.Hardware || f.GPU == nil) {
				continue
			}
			e := Fault{
				Time: v.Time.UTC(), Boot: m.BootID, Kind: kind, GPU: f.GPU, Check: f.Check, Code: f.Code, Class: f.Class, Text: f.Text,
			}
			said, open := open(append(before, added...), e, m)
			e.Opens = !open && e.Class == check.Hardware && e.GPU != nil
			if kind == FaultDrain || !said {
				added = append(added, e)
			}
		}
		return added
	})
	if err != nil {
		return nil, fmt.Errorf("the history of faults: %w", err)
	}
	for _, e := range added {
		if !e.Opens {
			continue
		}
		for _, c := range Cards(all, v.Time) {
			if c.Lemon() && sameCard(c.GPU, *e.GPU) {
				texts = append(texts, fmt.Sprintf("%s: fault number %d in 30 days: replace it", verdict.Name(*e.GPU), c.Recent))
			}
		}
	}
	return texts, nil
}

// open looks back from a new fault to the last time when its card was good:
// whether an episode is open since then, and whether this very code is in it.
func open(before []Fault, e Fault, m Memory) (said, open bool) {
	for i := len(before) - 1; i >= 0; i-- {
		f := before[i]
		if (f.GPU == nil) != (e.GPU == nil) || f.GPU != nil && !sameCard(*f.GPU, *e.GPU) {
			continue
		}
		if f.Kind == FaultAck || e.GPU != nil && m.good(e.GPU.UUID).Time.After(f.Time) {
			break
		}
		open = open || f.Class == check.Hardware
		said = said || f.Code == e.Code
	}
	return said, open
}

// Acknowledge writes down that a person has taken care of the cards.
func (d Durable) Acknowledge(m Memory, cards []gpu.Identity, who, why string, now time.Time) error {
	_, err := d.changeFaults(func([]Fault) []Fault {
		var out []Fault
		for _, c := range cards {
			out = append(out, Fault{Time: now.UTC(), Boot: m.BootID, Kind: FaultAck, GPU: &c, Text: why, Who: who})
		}
		return out
	})
	if err != nil {
		return fmt.Errorf("the history of faults: %w", err)
	}
	return nil
}
