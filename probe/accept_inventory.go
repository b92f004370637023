//go:build cgo

package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/nvml"
)

// inventory says what there is.
func (k *asker) inventory() {
	d, faults := k.lib.Driver()
	presence := k.fs.Presence()
	n := d.Count.Or(0)
	k.say("driver", map[string]any{
		"driver_version": d.Version, "nvml_version": d.NVML, "cuda_version": d.CUDA, "module_version": presence.ModuleVersion,
		"gpu_count": n, "pci_devices": len(presence.PCI), "device_nodes": len(presence.DeviceMinors), "faults": len(faults),
	}, "driver %s, NVML %s, CUDA %s, GPUs: %d in NVML, %d on the bus, %d device nodes",
		d.Version.Or("?"), d.NVML.Or("?"), d.CUDA.Or("?"), n, len(presence.PCI), len(presence.DeviceMinors))

	uid := os.Getuid()
	who := fmt.Sprintf("uid %d", uid)
	if uid == 0 {
		who = "root"
	}
	admin := "not told by the driver"
	if b, err := os.ReadFile(k.fs.Path("proc/driver/nvidia/params")); err == nil {
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "RmProfilingAdminOnly:"); ok {
				admin = clean(v)
			}
		}
	}
	k.say("asked-as", map[string]any{"uid": uid, "profiling_admin_only": admin}, "%s; RmProfilingAdminOnly %s", who, admin)

	var text []string
	var cards []gpu.GPU
	for i := range n {
		g := k.lib.Read(i, nil, nvml.Options{}, nil)
		cards = append(cards, g)
		text = append(text, card(g))
	}
	k.say("gpus", map[string]any{"gpus": cards}, "%s", strings.Join(counted(text), "; "))
}

// counted folds equal entries that follow each other: "8 × H100".
func counted(list []string) []string {
	var out []string
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n] == list[i] {
			n++
		}
		if n > 1 {
			out = append(out, fmt.Sprintf("%d × %s", n, list[i]))
		} else {
			out = append(out, list[i])
		}
		i += n
	}
	return out
}

// card is what a GPU is, in a few words.
func card(g gpu.GPU) string {
	h := g.Health
	parts := []string{g.Name, g.Architecture.Or("unknown architecture")}
	if m, ok := h.MemoryTotal.Get(); ok {
		parts = append(parts, fmt.Sprintf("%d MiB", m>>20))
	}
	parts = append(parts, "VBIOS "+g.VBIOS.Or("?"))
	onOff := func(name string, o gpu.Opt[bool]) {
		if on, ok := o.Get(); ok {
			parts = append(parts, name+map[bool]string{true: " on", false: " off"}[on])
		}
	}
	current := func(s gpu.Opt[gpu.Switch]) gpu.Opt[bool] {
		if v, ok := s.Get(); ok {
			return gpu.Some(v.Current)
		}
		return gpu.Opt[bool]{}
	}
	onOff("persistence", h.Persistence)
	onOff("ECC", current(h.ECC))
	onOff("MIG", current(h.MIG))
	if p, ok := h.PowerLimit.Get(); ok {
		parts = append(parts, fmt.Sprintf("%.0f W", p))
	}
	if len(g.Processes) > 0 {
		parts = append(parts, fmt.Sprintf("%d processes on it", len(g.Processes)))
	}
	for _, f := range g.Faults {
		parts = append(parts, f.Error())
	}
	return strings.Join(parts, ", ")
}

// support says what the driver does not answer. The many calls come last: one
// that hangs takes nothing else along.
func (k *asker) support() {
	fields, fault := k.lib.TryFields(k.o.gpu)
	if fault != nil {
		k.fail("fields", "%v", fault)
	} else {
		k.sayFields(fields)
	}

	a, fault := k.lib.Accounting(k.o.gpu)
	on, ok := a.Enabled.Get()
	switch {
	case fault != nil:
		k.fail("accounting", "%v", fault)
	case !ok:
		k.lacks("accounting", "not supported")
	default:
		k.say("accounting", map[string]any{"enabled": on, "buffer_processes": a.Buffer},
			"%s, buffer for %d processes", map[bool]string{true: "on", false: "off"}[on], a.Buffer.Or(0))
	}

	calls, fault := k.lib.TryCalls(k.o.gpu)
	if fault != nil {
		k.fail("calls", "%v", fault)
		return
	}
	k.say("calls", callValues(calls), "%d calls made: %s", len(calls), unanswered(calls))

	slices.SortStableFunc(calls, func(a, b nvml.CallResult) int { return cmp.Compare(b.Time, a.Time) })
	var slow []string
	values := map[string]any{}
	for i, c := range calls {
		values[c.Call+"_microseconds"] = micros(c.Time)
		if i < 3 {
			slow = append(slow, fmt.Sprintf("%s %.0f µs", c.Call, micros(c.Time)))
		}
	}
	k.say("slow-calls", values, "%s", strings.Join(slow, ", "))
}

func callValues(calls []nvml.CallResult) map[string]any {
	values := map[string]any{}
	for _, c := range calls {
		if c.Result != nvml.Success {
			values[c.Call] = c.Result
		}
	}
	return values
}

// unanswered lists the calls that gave no value, by what they answered.
func unanswered(calls []nvml.CallResult) string {
	by := map[nvml.Result][]string{}
	var order []nvml.Result
	for _, c := range calls {
		if c.Result == nvml.Success {
			continue
		}
		if by[c.Result] == nil {
			order = append(order, c.Result)
		}
		by[c.Result] = append(by[c.Result], strings.TrimPrefix(c.Call, "nvmlDevice"))
	}
	if len(order) == 0 {
		return "all answered"
	}
	var parts []string
	for _, r := range order {
		parts = append(parts, fmt.Sprintf("%s: %s", r, strings.Join(by[r], ", ")))
	}
	return strings.Join(parts, "; ")
}

func (k *asker) sayFields(fields []nvml.FieldResult) {
	values := map[string]any{}
	var without []string
	for _, f := range fields {
		if f.Result == nvml.Success {
			continue
		}
		name := fmt.Sprintf("field_%d", f.ID)
		values[name] = f.Result
		if f.Result == nvml.NotSupported {
			without = append(without, fmt.Sprint(f.ID))
		} else {
			without = append(without, fmt.Sprintf("%d (%s)", f.ID, f.Result))
		}
	}
	if len(without) == 0 {
		k.say("fields", values, "all %d answered", len(fields))
		return
	}
	k.say("fields", values, "%d of %d: %s", len(without), len(fields), strings.Join(without, ", "))
}
