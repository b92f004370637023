package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxNumbers is Slurm's limit of devices on a node.
const maxNumbers = 1024

// tokens cuts a list at commas and blanks; an empty item is no item (and never
// GPU 0).
func tokens(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

// numbers reads a list of numbers and ranges, without repetitions.
func numbers(s string) ([]int, error) {
	var out []int
	for _, t := range tokens(s) {
		lo, hi, ranged := strings.Cut(t, "-")
		if !ranged {
			hi = lo
		}
		a, err1 := strconv.ParseUint(lo, 10, 16)
		b, err2 := strconv.ParseUint(hi, 10, 16)
		if err1 != nil || err2 != nil || b < a || b-a >= maxNumbers {
			return nil, fmt.Errorf("%q is not a device number", Clean(t, 40))
		}
		for v := int(a); v <= int(b); v++ {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
		if len(out) > maxNumbers {
			return nil, fmt.Errorf("more than %d devices", maxNumbers)
		}
	}
	return out, nil
}

// cudaNone are the values that mean "no device" in CUDA_VISIBLE_DEVICES.
var cudaNone = []string{"nodevfiles", "-1", "none", "void"}

// cudaTokens are the items of CUDA_VISIBLE_DEVICES, without those that mean no
// device.
func cudaTokens(s string) []string {
	return slices.DeleteFunc(tokens(s), func(t string) bool { return slices.Contains(cudaNone, strings.ToLower(t)) })
}

// isUUID says whether a token names a device by identity.
func isUUID(t string) bool { return hasPrefixFold(t, "GPU-") || hasPrefixFold(t, "MIG-") }

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// minPrefix is how much of a UUID must be there, "GPU-" and eight digits: CUDA
// accepts a beginning as long as it fits one device only.
const minPrefix = 12

// byUUID finds the device that a GPU-…, MIG-… or MIG-GPU-…/gi/ci token names.
func byUUID(gpus []*InventoryGPU, token string) (target, bool) {
	if hasPrefixFold(token, "MIG-GPU-") {
		return byOldMIG(gpus, token)
	}
	var found []target
	match := func(uuid string, t target) {
		if strings.EqualFold(uuid, token) || len(token) >= minPrefix && hasPrefixFold(uuid, token) {
			found = append(found, t)
		}
	}
	for _, g := range gpus {
		match(g.UUID, target{gpu: g})
		for i := range g.MIG {
			match(g.MIG[i].UUID, target{gpu: g, mig: &g.MIG[i]})
		}
	}
	if len(found) != 1 {
		return target{}, false
	}
	return found[0], true
}

// byOldMIG reads the form of drivers before 470.42.01: MIG-<card's UUID>/gi/ci.
func byOldMIG(gpus []*InventoryGPU, token string) (target, bool) {
	part := strings.Split(token[len("MIG-"):], "/")
	if len(part) != 3 {
		return target{}, false
	}
	gi, err1 := strconv.Atoi(part[1])
	ci, err2 := strconv.Atoi(part[2])
	if err1 != nil || err2 != nil {
		return target{}, false
	}
	for _, g := range gpus {
		if !strings.EqualFold(g.UUID, part[0]) {
			continue
		}
		for i := range g.MIG {
			if m := &g.MIG[i]; m.GI == gi && m.CI == ci {
				return target{gpu: g, mig: m}, true
			}
		}
	}
	return target{}, false
}
