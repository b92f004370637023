package main

import (
	"fmt"
	"slices"
	"strings"

	"gpuhooks/internal/check"
	"gpuhooks/internal/cli"
	"gpuhooks/internal/gpu"
)

// chooseGPUs finds the cards that --gpu names by index, UUID (or its beginning),
// PCI address or device file. Nothing named is all of them: nil.
func chooseGPUs(gpus []gpu.GPU, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	only := []string{}
	for _, name := range names {
		found := false
		for i := range gpus {
			if called(&gpus[i], name) {
				found = true
				if u := gpus[i].UUID; !slices.Contains(only, u) {
					only = append(only, u)
				}
			}
		}
		if !found {
			return nil, &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--gpu %q: no such GPU here", name), Hint: "GPUs here: " + listGPUs(gpus)}
		}
	}
	return only, nil
}

// called says whether a person who writes name means this card.
func called(g *gpu.GPU, name string) bool {
	lower := strings.ToLower(name)
	pci := strings.ToLower(g.PCI)
	switch {
	case g.Index >= 0 && name == fmt.Sprint(g.Index):
		return true
	case strings.HasPrefix(lower, "gpu-") && len(lower) >= len("gpu-")+4:
		return strings.HasPrefix(strings.ToLower(g.UUID), lower)
	case strings.HasPrefix(name, "/dev/nvidia"):
		minor, ok := g.Minor.Get()
		return ok && name == fmt.Sprintf("/dev/nvidia%d", minor)
	}
	// NVML's domain has eight digits, the kernel's four, lspci leaves it out.
	return pci != "" && (lower == pci || lower == strings.TrimPrefix(pci, "0000") || lower == strings.TrimPrefix(pci, "00000000:"))
}

func listGPUs(gpus []gpu.GPU) string {
	var out []string
	for _, g := range gpus {
		out = append(out, fmt.Sprintf("%s (%s)", place(g.Index), g.PCI))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// knownChecks refuses a --check that does not exist.
func knownChecks(names []string) error {
	for _, n := range names {
		if !slices.Contains(check.Names(), n) {
			return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--check %q: there is no such check", n), Hint: "gpu-healthcheck list"}
		}
	}
	return nil
}
