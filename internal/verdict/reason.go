package verdict

import (
	"fmt"
	"strings"

	"gpuhooks/internal/gpu"
)

// maxReason bounds a reason: Slurm shows it in lists, and one broken board can
// have eight GPUs with three findings each.
const maxReason = 400

// reason writes the deciding findings, one piece a code:
//
//	XID95 gpu=2,5 GPU-… GPU-…; ECC gpu=2
//
// A UUID stands only where its GPU is first named. `sinfo -R` cuts after 20
// characters, so that the first code and index must tell the story.
func reason(findings []Finding) string {
	var pieces []string
	named := map[string]bool{}
	for i, f := range findings {
		if firstWith(findings, f.Code) < i {
			continue
		}
		piece := f.Code + where(findings[i:], f.Code, named)
		if f.GPU == nil {
			piece += " " + f.Text
		}
		piece = plain(piece)
		if left := len(findings) - i; len(strings.Join(pieces, "; "))+len(piece) > maxReason && len(pieces) > 0 {
			pieces = append(pieces, fmt.Sprintf("and %d more", left))
			break
		}
		pieces = append(pieces, piece[:min(len(piece), maxReason)])
	}
	return strings.Join(pieces, "; ")
}

func firstWith(findings []Finding, code string) int {
	for i, f := range findings {
		if f.Code == code {
			return i
		}
	}
	return len(findings)
}

// where names the GPUs of all findings with a code: " gpu=2,5 GPU-… GPU-…".
func where(findings []Finding, code string, named map[string]bool) string {
	var index, uuids []string
	seen := map[string]bool{}
	for _, f := range findings {
		if f.Code != code || f.GPU == nil || seen[f.GPU.PCI+f.GPU.UUID] {
			continue
		}
		seen[f.GPU.PCI+f.GPU.UUID] = true
		index = append(index, short(*f.GPU))
		if u := f.GPU.UUID; u != "" && !named[u] {
			named[u] = true
			uuids = append(uuids, u)
		}
	}
	if len(index) == 0 {
		return ""
	}
	return strings.Join(append([]string{" gpu=" + strings.Join(index, ",")}, uuids...), " ")
}

// short is a GPU's index, or its PCI address when NVML does not list it.
func short(id gpu.Identity) string {
	if id.Index >= 0 {
		return fmt.Sprint(id.Index)
	}
	if id.PCI != "" {
		return id.PCI
	}
	return "?"
}

// plain leaves printable ASCII without quotes, backslashes, semicolons and
// dollar signs: names and addresses may come from a forged line in the kernel
// log, and the reason goes through scontrol and other programs' parsers.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune("\"'`\\;$", r) {
			return '_'
		}
		return r
	}, s)
}
