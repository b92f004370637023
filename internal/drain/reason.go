// Package drain takes a node out of service and, where a site wants it, back:
// with one exact reason, never over somebody else's, and never so many nodes
// that a mistake of ours empties the cluster (DESIGN §6).
package drain

import (
	"fmt"
	"strings"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurmctl"
)

// Prefix begins every reason of ours. It is not "NHC:", which NHC would undrain,
// nor "Prolog error", which is Slurm's.
const Prefix = "[HC] "

// Item is one finding in a reason.
type Item struct {
	Code  string       // short, from the check: gpu-lost, ecc-uncorrected, …
	Index gpu.Opt[int] // NVML index; unset when the finding is the node's
	Minor gpu.Opt[int]
	UUID  string
	PCI   string
	Text  string // a few words more, or ""
}

// Reason makes the drain reason of the findings, the most important first:
//
//	[HC] gpu-lost gpu=3 GPU-4b0c… minor=2 pci=00000000:3B:00.0; gpu=5 GPU-…
//
// sinfo -R shows 20 characters, so code and index come first. What does not fit
// into slurmctl.MaxReason is counted. Without items it is "".
func Reason(items []Item) string {
	const more = len("; +999 more")
	out := ""
	for i, it := range items {
		text := it.text(i > 0 && it.code() == items[i-1].code())
		switch {
		case i == 0:
			out = slurmctl.PlainReason(Prefix + text)
		case len(out)+len("; ")+len(text)+more > slurmctl.MaxReason:
			return slurmctl.PlainReason(fmt.Sprintf("%s; +%d more", out, len(items)-i))
		default:
			out = slurmctl.PlainReason(out + "; " + text)
		}
	}
	return out
}

func (it Item) text(sameCode bool) string {
	var w []string
	if !sameCode || !it.Index.IsSet() {
		w = append(w, it.code())
	}
	if i, ok := it.Index.Get(); ok {
		w = append(w, fmt.Sprintf("gpu=%d", i))
	}
	if it.UUID != "" {
		w = append(w, it.UUID)
	}
	if m, ok := it.Minor.Get(); ok {
		w = append(w, fmt.Sprintf("minor=%d", m))
	}
	if it.PCI != "" {
		w = append(w, "pci="+it.PCI)
	}
	if it.Text != "" {
		w = append(w, it.Text)
	}
	return cut(strings.ReplaceAll(strings.Join(w, " "), ";", ","), 200)
}

// code is the code as a single word of letters, digits and dashes.
func (it Item) code() string {
	return cut(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, it.Code), 40)
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// Ours says whether a reason was written by gpuhooks.
func Ours(reason string) bool { return strings.HasPrefix(reason, Prefix) }

// CodeOf returns the first code of a reason of ours.
func CodeOf(reason string) (code string, ok bool) {
	if !Ours(reason) {
		return "", false
	}
	w := strings.Fields(reason[len(Prefix):])
	if len(w) == 0 {
		return "", false
	}
	return strings.TrimRight(w[0], ";"), true
}
