//go:build cgo

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"gpuhooks/internal/cli"
)

const acceptanceSchema = "gpuhooks.acceptance/1"

// How a question came out.
const (
	answered    = "answered"
	unsupported = "unsupported" // this card or driver has nothing to answer with
	notAsked    = "not-asked"
	failed      = "failed"
)

// answer is one answer, a line of `gpu-probe accept`. The names of the values
// carry their units.
type answer struct {
	ID       string         `json:"id,omitempty"`
	Group    string         `json:"group,omitempty"`
	Question string         `json:"question,omitempty"`
	State    string         `json:"state"`
	Answer   string         `json:"answer"` // a sentence
	Values   map[string]any `json:"values,omitempty"`
	Note     string         `json:"note,omitempty"`
}

// acceptance is the document.
type acceptance struct {
	Schema  string    `json:"schema"`
	Time    time.Time `json:"time"`
	Version string    `json:"version"`
	Answers []answer  `json:"answers"`
}

// questions in the order of the document; the note says what hangs on the answer.
var questions = []answer{
	{ID: "driver", Group: "inventory", Question: "driver, NVML, CUDA"},
	{ID: "gpus", Group: "inventory", Question: "the cards"},
	{ID: "asked-as", Group: "inventory", Question: "asked with which rights"},
	{ID: "tier1-probe", Group: "time-probe", Question: "time of gpu-probe read (tier 1)", Note: "a prolog's deadline is 4 s, the aim 1 s"},
	{ID: "tier1-healthcheck", Group: "time-healthcheck", Question: "time of gpu-healthcheck at tier 1", Note: "a prolog's deadline is 4 s, the aim 1 s"},
	{ID: "nvidia-smi", Group: "time-nvidia-smi", Question: "time of nvidia-smi -q, for comparison"},
	{ID: "calls", Group: "support", Question: "calls that are not supported or refused", Note: "checks that need them skip"},
	{ID: "fields", Group: "support", Question: "field values that are not supported", Note: "their columns stay empty in records"},
	{ID: "slow-calls", Group: "support", Question: "slowest calls", Note: "tier 1 makes each once"},
	{ID: "accounting", Group: "support", Question: "the driver's own accounting mode, as found"},
	{ID: "gpm-support", Group: "gpm", Question: "GPM on this card and driver", Note: "without it SM and Tensor activity need DCGM"},
	{ID: "gpm-streaming", Group: "gpm", Question: "GPM streaming, as found", Note: "assumed on by default"},
	{ID: "gpm-mig", Group: "gpm", Question: "GPM of a GPU in MIG mode, whole and by instance"},
	{ID: "gpm-gap", Group: "gpm", Question: "shortest distance between two GPM samples", Note: "assumed 100 ms"},
	{ID: "gpm-cumulative", Group: "gpm", Question: "cumulative GPM metrics 248 to 260", Note: "without them averages need the sampler"},
	{ID: "gpm-cost", Group: "gpm", Question: "cost of a GPM sample and of a sampler's read", Note: "assumed below 1 ms of CPU a tick"},
	{ID: "gpm-memory", Group: "gpm", Question: "memory of a process that holds NVML open", Note: "the sampler's aim is 12 MB"},
	{ID: "rights", Group: "rights", Question: "what an ordinary user may read", Note: "GPM assumed open to all where MIG is off"},
	{ID: "gpm-idle", Group: "idle", Question: "GPM metrics without our load: NaN and return codes", Note: "NaN must stay unknown, never 0"},
	{ID: "pairs-idle", Group: "idle", Question: "mean of short GPM pairs against one long pair, without our load"},
	{ID: "cumulative-idle", Group: "idle", Question: "cumulative GPM counters against the long pair, without our load"},
	{ID: "energy-idle", Group: "idle", Question: "energy counter against the integral of power, without our load"},
	{ID: "throttle-idle", Group: "idle", Question: "throttle counters 74-81, 269-271: present, never backwards", Note: "their deltas are the record's throttled seconds"},
	{ID: "energy-refresh", Group: "energy", Question: "how often the energy counter changes", Note: "bounds the error of a short job's energy"},
	{ID: "power-refresh", Group: "energy", Question: "how often the power reading changes"},
	{ID: "ring-idle", Group: "ring", Question: "the driver's ring of GPU-Util samples, without our load", Note: "assumed 72 entries, about 10 s: a tick of 5 s loses none"},
	{ID: "client", Group: "client", Question: "power with NVML open and sampled, against closed"},
	{ID: "load", Group: "load", Question: "the known load"},
	{ID: "load-program", Group: "load", Question: "the load by its own account"},
	{ID: "pairs-load", Group: "load", Question: "mean of short GPM pairs against one long pair, under load", Note: "a record's averages rest on it"},
	{ID: "cumulative-load", Group: "load", Question: "cumulative GPM counters against the long pair, under load", Note: "shows the counters' units"},
	{ID: "energy-load", Group: "load", Question: "energy counter against the integral of power, under load"},
	{ID: "throttle-load", Group: "load", Question: "throttle counters under load"},
	{ID: "ring-load", Group: "load", Question: "the driver's ring of GPU-Util samples, under load"},
}

// lostGroup is the line that says why a group has no answers: status 124 is
// the script's own limit, 0 that it was not asked.
func lostGroup(group string, status int, text string) answer {
	a := answer{Group: group, State: failed, Answer: fmt.Sprintf("the program ended with status %d", status)}
	switch status {
	case 0:
		a.State, a.Answer = notAsked, "not asked"
	case 124:
		a.Answer = "no answer within its time"
	}
	if text = clean(text); text != "" {
		a.Answer += ": " + text
	}
	return a
}

// clean leaves one line of printable text of what another program said.
func clean(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '|' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return s[:min(len(s), 300)]
}

// mergeAnswers reads the lines in path and writes the document or its table.
func mergeAnswers(path string, table bool, out io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	given, lost := map[string]answer{}, map[string]answer{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a answer
		// A process that was killed leaves half a line.
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		if a.ID == "" {
			lost[a.Group] = a
		} else {
			given[a.ID] = a
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	doc := acceptance{Schema: acceptanceSchema, Time: time.Now().UTC().Truncate(time.Second), Version: cli.Version()}
	for _, q := range questions {
		a, ok := given[q.ID]
		if !ok {
			if a, ok = lost[q.Group]; !ok {
				a = answer{State: failed, Answer: "no answer"}
			}
		}
		a.ID, a.Group, a.Question, a.Note = q.ID, q.Group, q.Question, q.Note
		doc.Answers = append(doc.Answers, a)
	}
	if table {
		return printAcceptance(doc, out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", " ")
	return e.Encode(doc)
}

// printAcceptance writes the table, as Markdown, so that it can be kept as it is.
func printAcceptance(doc acceptance, out io.Writer) error {
	width := 0
	for _, a := range doc.Answers {
		width = max(width, utf8.RuneCountInString(a.Question))
	}
	var b strings.Builder
	row := func(q, a string) {
		fmt.Fprintf(&b, "| %s%s | %s |\n", q, strings.Repeat(" ", width-utf8.RuneCountInString(q)), a)
	}
	row("question", "answer")
	fmt.Fprintf(&b, "|%s|---|\n", strings.Repeat("-", width+2))
	for _, a := range doc.Answers {
		text := a.Answer
		if a.State == failed {
			text = "FAILED: " + text
		}
		row(a.Question, text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
