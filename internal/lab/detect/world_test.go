//go:build e2e

package detect

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/lab/stage"
	"gpuhooks/internal/verdict"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stage.Clean()
	os.Exit(code)
}

// world is one node and what the health check says of it.
type world struct {
	*stage.Stage
	t *testing.T
}

// deadline of a look here: a hang is found out at its end.
const deadline = 1500 * time.Millisecond

func newWorld(t *testing.T, profile, toml string) *world {
	t.Helper()
	w := &world{stage.New(t, profile, "enforce"), t}
	if profile == "dgx-a100-mig" {
		w.Write("gres.conf", "AutoDetect=nvml\n")
	}
	w.Configure("enforce", false, fmt.Sprintf("[healthcheck]\ndeadline = %q\nboot = %q\n%s", deadline, deadline, toml))
	return w
}

// look runs gpu-healthcheck and returns what it says.
func (w *world) look() (verdict.Verdict, time.Duration) {
	w.t.Helper()
	r := w.Run("gpu-healthcheck", []string{"PATH=/usr/bin:/bin"}, "--json")
	var page struct {
		Verdict verdict.Verdict `json:"verdict"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &page); err != nil {
		w.t.Fatalf("status %d: %v\n%s%s", r.Code, err, r.Stdout, r.Stderr)
	}
	return page.Verdict, r.Took
}

// wholeGPUs writes a gres.conf that knows nothing of MIG.
func (w *world) wholeGPUs() {
	w.Write("gres.conf", "NodeName=n1 Name=gpu File="+strings.Join(w.Devices, "\nNodeName=n1 Name=gpu File=")+"\n")
}

// learn writes the baseline of the node as it is.
func (w *world) learn() {
	w.t.Helper()
	r := w.Run("gpu-healthcheck", []string{"PATH=/usr/bin:/bin"}, "baseline", "learn")
	if r.Code != 0 {
		w.t.Fatalf("baseline learn: status %d\n%s", r.Code, r.Stderr)
	}
	w.Write("baseline.toml", r.Stdout)
}

// baseline changes the text of the baseline.
func (w *world) baseline(change func(string) string) {
	w.Write("baseline.toml", change(w.Read("baseline.toml")))
}

// age moves the times in the node's memory back, as if that time had passed.
func (w *world) age(d time.Duration) {
	w.t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(w.Read("run/memory.json")), &m); err != nil {
		w.t.Fatal(err)
	}
	b, err := json.Marshal(back(m, d))
	if err != nil {
		w.t.Fatal(err)
	}
	w.Write("run/memory.json", string(b))
}

// back moves every time in a JSON value.
func back(v any, d time.Duration) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = back(e, d)
		}
	case []any:
		for i, e := range v {
			v[i] = back(e, d)
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil && strings.Contains(v, "T") {
			return at.Add(-d).Format(time.RFC3339Nano)
		}
	}
	return v
}
