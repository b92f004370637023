package report

import (
	"fmt"
	"strings"

	"gpuhooks/internal/record"
)

// Floors below which nothing is judged.
const (
	minSeconds    = 10.0  // a fact is stated from here on
	adviceSeconds = 300.0 // advice is given from here on
	minCoverage   = 0.8   // of the run must have been seen
	unusedBelow   = 0.005
)

// Note is one sentence or two about a job.
type Note struct {
	Rule  string `json:"rule"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
}

// Level says how much a note matters.
type Level string

// The levels.
const (
	Info    Level = "info"
	Advice  Level = "advice"  // the user can do better
	Problem Level = "problem" // something is wrong with a GPU
)

// rule looks at a job and has something to say, or "". Advice is added only to
// runs that were long enough to draw conclusions.
type rule struct {
	name   string
	level  Level
	fact   func(Job) string
	advice string
}

// rules are the advice rules, in the order in which they are shown. A new one is
// a row.
var rules = []rule{
	{"unused-gpus", Advice, unusedGPUs, "Please ask for fewer GPUs, or make sure that the program uses all of them: idle GPUs keep other jobs waiting."},
	{"busy-low-sm", Advice, busyLowSM, "Larger batches, fused kernels or CUDA graphs usually help."},
	{"idle-tail", Advice, idleAtEnd, "Ending the job when the work is done frees the GPUs for others."},
	{"tensor-unused", Info, tensorUnused, "If the precision allows it, bf16, fp16 or TF32 would use them."},
	{"memory-small", Info, memorySmall, "A smaller GPU or a MIG instance may do, and may start sooner."},
	{"heat", Problem, heat, "This is a matter of cooling or power supply, not of the job."},
	{"power-cap", Info, powerCap, ""},
	{"left-over-memory", Info, leftOver, ""},
}

// Notes are what is to be said about a job besides its numbers.
func Notes(j Job) []Note {
	var out []Note
	_, elapsed, _, known := j.span()
	for _, r := range rules {
		text := r.fact(j)
		if text == "" {
			continue
		}
		if r.advice != "" && known && elapsed >= adviceSeconds {
			text += " " + r.advice
		}
		out = append(out, Note{r.name, r.level, text})
	}
	return out
}

func unusedGPUs(j Job) string {
	all := j.devices()
	var idle []device
	for _, d := range all {
		if d.unused() {
			idle = append(idle, d)
		}
	}
	switch {
	case len(idle) == 0:
		return ""
	case len(all) == 1:
		return "This job did not use its GPU. Is the code GPU-enabled?"
	case len(idle) == len(all):
		return fmt.Sprintf("This job used none of its %d GPUs. Is the code GPU-enabled?", len(all))
	}
	return fmt.Sprintf("This job did not use %d of the %d allocated GPUs (%s).", len(idle), len(all), j.names(idle))
}

// busyLowSM is the case that GPU-Util cannot show.
func busyLowSM(j Job) string {
	var hit []device
	var util, sm float64
	for _, d := range j.devices() {
		u, okU := d.Get(gpuUtil)
		s, okS := d.Get(smActive)
		if okU && okS && u >= 0.6 && s < 0.25 && d.judged(gpuUtil) && d.judged(smActive) {
			hit = append(hit, d)
			util += u
			sm += s
		}
	}
	if len(hit) == 0 {
		return ""
	}
	n := float64(len(hit))
	where := ""
	if len(hit) < len(j.devices()) {
		where = " on " + j.names(hit)
	}
	return fmt.Sprintf("GPU-Util is %s%s, yet on average only %s of the GPU's processors (SMs) had work: GPU-Util counts the time in which any kernel ran, however small.",
		percent(util/n), where, percent(sm/n))
}

func idleAtEnd(j Job) string {
	tail := j.fold(idleTail) // the least of all GPUs: all were idle that long
	_, elapsed, _, ok := j.span()
	t, known := tail.Value.Get()
	if !ok || !known || tail.Known < tail.Of || t >= 0.99*elapsed || (t < 1800 && t < 0.2*elapsed) || t < 60 {
		return ""
	}
	return fmt.Sprintf("No GPU did anything during the last %s of %s.", hours(t), hours(elapsed))
}

func tensorUnused(j Job) string {
	sm, t, f := j.fold(smActive), j.fold(tensor), j.fold(fp32)
	if !j.long() || !complete(sm, t, f) || sm.Value.Or(0) < 0.5 || t.Value.Or(1) >= 0.02 || f.Value.Or(0) < 0.2 {
		return ""
	}
	return fmt.Sprintf("The GPUs were busy with 32-bit arithmetic (%s) and hardly used their tensor cores (%s).", percent(f.Value.Or(0)), percent(t.Value.Or(0)))
}

func memorySmall(j Job) string {
	var most, of float64
	for _, d := range j.devices() {
		used, okU := d.Get(memoryMax)
		size, okS := d.Get(memorySize)
		if !okU || !okS || size <= 0 || !d.judged(memoryMax) {
			return ""
		}
		if used/size > most || of == 0 {
			most, of = used/size, size
		}
	}
	if !j.long() || of == 0 || most >= 0.25 || j.fold(smActive).Value.Or(1) >= 0.5 {
		return ""
	}
	return fmt.Sprintf("At most %s of the GPU memory was in use (%s of %s GB).", percent(most), gigabytes(most*of), gigabytes(of))
}

func heat(j Job) string {
	var parts []string
	for _, d := range j.devices() {
		elapsed := d.rec.Elapsed.Or(0)
		hot, _ := d.Get("throttle_hw_thermal_seconds")
		brake, _ := d.Get("throttle_hw_power_brake_seconds")
		soft, _ := d.Get("throttle_sw_thermal_seconds")
		if s := max(hot, brake, soft); elapsed >= minSeconds && s >= 0.01*elapsed {
			what := "heat"
			if s == brake {
				what = "its power supply"
			}
			parts = append(parts, fmt.Sprintf("%s ran slower for %s because of %s", j.name(d), hours(s), what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + "."
}

func powerCap(j Job) string {
	_, elapsed, _, ok := j.span()
	cap := j.fold("throttle_sw_power_cap_seconds")
	v, known := cap.Value.Get()
	if !ok || !known || elapsed < minSeconds || v < 0.05*elapsed*float64(cap.Known) {
		return ""
	}
	return fmt.Sprintf("Clocks were lowered to stay within the power limit during %s of the time, which is normal under full load.", percent(v/elapsed/float64(cap.Known)))
}

func leftOver(j Job) string {
	var hit []device
	for _, d := range j.devices() {
		if v, ok := d.Get("memory_used_before_bytes"); ok && v > 1<<30 && !d.Shared && d.MIG == nil {
			hit = append(hit, d)
		}
	}
	if len(hit) == 0 {
		return ""
	}
	return fmt.Sprintf("GPU memory was in use before the job began (%s): peak memory includes it.", j.names(hit))
}

// long says whether conclusions about the program may be drawn at all.
func (j Job) long() bool {
	_, elapsed, _, ok := j.span()
	return ok && elapsed >= adviceSeconds
}

// complete says that every GPU's value is known.
func complete(all ...record.Folded) bool {
	for _, f := range all {
		if f.Known == 0 || f.Known < f.Of {
			return false
		}
	}
	return true
}

// names lists GPUs: "GPU 3, 4, 5", with their nodes where there are several.
func (j Job) names(list []device) string {
	var parts []string
	node := ""
	for _, d := range list {
		switch {
		case d.rec.Node == node:
			parts[len(parts)-1] += ", " + label(d)
		case len(j.Records) > 1:
			parts = append(parts, record.Clean(d.rec.Node)+" GPU "+label(d))
		default:
			parts = append(parts, "GPU "+label(d))
		}
		node = d.rec.Node
	}
	return strings.Join(parts, "; ")
}

func (j Job) name(d device) string { return j.names([]device{d}) }

// label is the GPU's index, with the instance where it is MIG.
func label(d device) string {
	switch {
	case d.Index < 0:
		return "?"
	case d.MIG != nil:
		return fmt.Sprintf("%d/%d", d.Index, d.MIG.GI)
	}
	return fmt.Sprint(d.Index)
}

// why is the commonest reason for which a field is unknown.
func (j Job) why(field string) record.Why {
	counts := map[record.Why]int{}
	var best record.Why
	for _, d := range j.devices() {
		v, there := d.Values[field]
		switch {
		case !there:
			v.Why = record.WhyNotSupported
		case v.Value.IsSet():
			continue
		}
		counts[v.Why]++
		if best == "" || counts[v.Why] > counts[best] {
			best = v.Why
		}
	}
	return best
}
