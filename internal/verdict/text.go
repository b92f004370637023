package verdict

import (
	"fmt"
	"strings"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
	"gpuhooks/internal/gpu"
)

// Summary is the verdict in one line, for a log.
func (v Verdict) Summary() string {
	switch v.Action {
	case Drain:
		return "drain: " + v.Reason
	case WouldDrain:
		return "would drain: " + v.Reason
	}
	if len(v.Findings) == 0 {
		return string(v.Outcome)
	}
	return fmt.Sprintf("%s: %s", v.Outcome, count(v.Findings))
}

func count(findings []Finding) string {
	n := map[check.Outcome]int{}
	for _, f := range findings {
		n[f.Outcome]++
	}
	var parts []string
	for _, o := range []check.Outcome{check.Fail, check.Error, check.Warn} {
		if n[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	return strings.Join(parts, ", ")
}

// Line is one finding in one line, for a log or a person:
//
//	gpu-lost: fail: GPU 3 (00000000:5C:00.0, /dev/nvidia3, GPU-…): fell off the bus: … (would drain)
func (f Finding) Line() string {
	s := fmt.Sprintf("%s: %s: ", f.Check, f.Outcome)
	if f.GPU != nil {
		s += Name(*f.GPU) + ": "
	}
	s += f.Text
	switch {
	case f.Acts() && f.Mode == config.Enforce:
		s += " (drain)"
	case f.Acts():
		s += " (would drain)"
	}
	return s
}

// Name shows a GPU in every way a person may look for it.
func Name(id gpu.Identity) string {
	var parts []string
	if id.PCI != "" {
		parts = append(parts, id.PCI)
	}
	if m, ok := id.Minor.Get(); ok {
		parts = append(parts, fmt.Sprintf("/dev/nvidia%d", m))
	}
	if id.UUID != "" {
		parts = append(parts, id.UUID)
	}
	name := "GPU"
	if id.Index >= 0 {
		name = fmt.Sprintf("GPU %d", id.Index)
	}
	if len(parts) == 0 {
		return name
	}
	return name + " (" + strings.Join(parts, ", ") + ")"
}

// Number is an outcome for monitoring: 0 pass, 1 warn, 2 could not look, 3 fail.
// What does not apply has none.
func Number(o check.Outcome) (n int, ok bool) {
	switch o {
	case check.Pass:
		return 0, true
	case check.Warn:
		return 1, true
	case check.Fail:
		return 3, true
	case check.Skip:
		return 0, false
	}
	return 2, true
}
