//go:build cgo

package sim_test

import (
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"gpuhooks/internal/sim"
)

// A branch's library exports what such a driver exports and nothing else, and
// refuses the field values that came later.
func TestBranches(t *testing.T) {
	// A field of each step in which they came: total energy, link state (520),
	// T.Limit (525), PCIe bytes (535), recovery action (565), throttled by heat (570).
	fields := []string{"83", "165", "194", "197", "230", "269"}
	for branch, answered := range map[string]int{"470": 1, "535": 4, "550": 4, "": 6} {
		t.Run("branch "+branch, func(t *testing.T) {
			n := newNode(t, "dgx-h100")
			want := sim.Symbols()
			if branch != "" {
				if err := n.SetDriver(branch); err != nil {
					t.Fatal(err)
				}
				names, err := sim.Exports(branch)
				if err != nil {
					t.Fatal(err)
				}
				want = slices.DeleteFunc(want, func(s string) bool { return !slices.Contains(names, s) })
			}
			got := exported(t, n.Library())
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%d functions are exported, want %d", len(got), len(want))
			}
			var values []fieldResult
			look(t, n, &values, "fields", append([]string{"0"}, fields...)...)
			for i, v := range values {
				if known := v.Return == 0; known != (i < answered) {
					t.Errorf("field %s answers %d", fields[i], v.Return)
				}
			}
		})
	}
	if err := newNode(t, "dgx-h100").SetDriver("418"); err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("an unknown branch: %v", err)
	}
	for _, branch := range sim.Branches() {
		if _, err := sim.Exports(branch); err != nil {
			t.Error(err)
		}
	}
}

func exported(t *testing.T, library string) []string {
	t.Helper()
	f, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dynamic, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range dynamic {
		if s.Section != elf.SHN_UNDEF && strings.HasPrefix(s.Name, "nvml") {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// One field value may fail while the others answer.
func TestAFieldFails(t *testing.T) {
	n := newNode(t, "dgx-h100")
	set(t, n, "gpu.0.field.230=GPU_IS_LOST", "gpu.*.field.165=NOT_SUPPORTED", "gpu.1.field.12=garbage")
	var got []fieldResult
	look(t, n, &got, "fields", "0", "83", "230", "165")
	if got[0].Return != 0 || got[1].Return != 15 || got[2].Return != 3 {
		t.Errorf("GPU 0 answers %+v", got)
	}
	look(t, n, &got, "fields", "1", "230", "165", "12")
	if got[0].Return != 0 || got[1].Return != 3 || got[2].Return != 0 || got[2].Value < 1<<60 {
		t.Errorf("GPU 1 answers %+v", got)
	}
}
