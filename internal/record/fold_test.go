package record

import "testing"

func TestFoldGPUs(t *testing.T) {
	all := scenarios()
	unused, fallen := []Record{Build(all["unused"])}, []Record{Build(all["fallen"])}
	for _, c := range []struct {
		records   []Record
		field     string
		value     float64
		known, of int
	}{
		{unused, "sm_active_mean_ratio", 0.82 * 3 / 8, 8, 8},
		{unused, "energy_joules", 3600 * (3*592 + 5*100), 8, 8},
		{unused, "longest_idle_seconds", 3600, 8, 8},
		{unused, "idle_tail_seconds", 0, 8, 8},
		{fallen, "ecc_corrected_dram_errors", 0, 1, 2},
		{append(fallen, unused...), "pcie_replay_errors", 0, 9, 10},
	} {
		got := FoldGPUs(c.records, c.field)
		if v, ok := got.Value.Get(); !ok || v-c.value > 1e-3 || c.value-v > 1e-3 || got.Known != c.known || got.Of != c.of {
			t.Errorf("%s: %v %d of %d, want %v %d of %d", c.field, v, got.Known, got.Of, c.value, c.known, c.of)
		}
	}
	if got := FoldGPUs(unused, "no_such_field"); got.Value.IsSet() {
		t.Errorf("a field that does not exist: %+v", got)
	}
}
