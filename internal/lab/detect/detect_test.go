//go:build e2e

package detect

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/sim"
	"gpuhooks/internal/verdict"
)

var update = flag.Bool("update", false, "write docs/detection.md anew")

const document = "../../../docs/detection.md"

// fewest is how many faults the table is to hold.
const fewest = 60

// TestDetection injects each fault into a node that was well, looks at each
// healthy node, and holds what is found against docs/detection.md.
func TestDetection(t *testing.T) {
	list := faults()
	if len(list) < fewest {
		t.Errorf("%d faults are fewer than %d", len(list), fewest)
	}
	found := make([]row, len(list))
	calm := make([]row, len(sim.Profiles()))
	t.Run("fault", func(t *testing.T) {
		for i, f := range list {
			t.Run(f.what, func(t *testing.T) {
				t.Parallel()
				found[i] = f.run(t)
			})
		}
	})
	t.Run("healthy", func(t *testing.T) {
		for i, profile := range sim.Profiles() {
			t.Run(profile, func(t *testing.T) {
				t.Parallel()
				calm[i] = well(t, profile)
			})
		}
	})
	everyCheck(t, found)
	if *update {
		if slices.ContainsFunc(found, func(r row) bool { return r.what == "" }) {
			t.Fatal("this machine cannot show every fault: docs/detection.md stays as it is")
		}
		if err := os.WriteFile(document, []byte(page(found, calm)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(b), "\n")
	for _, r := range append(found, calm...) {
		if r.what == "" {
			continue // skipped, by name
		}
		if !slices.ContainsFunc(want, func(l string) bool { return strings.HasPrefix(l, r.same()) }) {
			t.Errorf("docs/detection.md has no line that begins\n%s\nIf that is right now: make detect", r.same())
		}
	}
}

// row is one line of a table.
type row struct {
	what, check, code, outcome, action string
	took                               time.Duration
}

// same is the row without the time.
func (r row) same() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", r.what, cmp.Or(r.check, "–"), cmp.Or(r.code, "–"), r.outcome, r.action)
}

func (r row) String() string { return fmt.Sprintf("%s %s |", r.same(), seconds(r.took)) }

// seconds is a time as exact as it means something: what does not run into the
// deadline takes a fraction of a second.
func seconds(d time.Duration) string {
	if d < deadline {
		return "< 1 s"
	}
	return "deadline"
}

func (f fault) run(t *testing.T) row {
	w := newWorld(t, cmp.Or(f.profile, "dgx-h100"), f.toml)
	if f.before != nil {
		f.before(w)
	}
	if f.baseline {
		w.learn()
	}
	if v, _ := w.look(); f.before == nil && f.toml == "" && unwell(v, f.profile) {
		t.Errorf("not well before the fault: %s: %+v", v.Summary(), v.Findings)
	}
	w.Forget()
	if f.inject != nil {
		f.inject(w)
	}
	w.Forget()
	v, took := w.look()
	r := row{what: f.what, outcome: string(check.Pass), action: string(v.Action), took: took}
	i := slices.IndexFunc(v.Findings, func(x verdict.Finding) bool { return x.Check == cmp.Or(f.check, x.Check) && !known(f.profile, x) })
	switch {
	case i >= 0 && f.check == "":
		t.Errorf("%s: found although there is nothing: %s", f.what, v.Findings[i].Line())
	case i < 0 && f.check != "":
		t.Errorf("%s: not found by %s: %+v", f.what, f.check, v.Findings)
	case i >= 0:
		x := v.Findings[i]
		r.check, r.code, r.outcome = x.Check, x.Code, string(x.Outcome)
	}
	return r
}

// everyCheck says which checks no fault has shown at work.
func everyCheck(t *testing.T, found []row) {
	for _, name := range check.Names() {
		if !slices.ContainsFunc(found, func(r row) bool { return r.check == name }) {
			t.Errorf("no fault is found by %s", name)
		}
	}
}
