package line

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/record"
	"gpuhooks/internal/verdict"
)

// point is a decoded line.
type point struct {
	measurement string
	tags        map[string]string
	keys        []string // of the tags, in their order
	fields      map[string]lineprotocol.Value
	time        time.Time
}

func decode(t *testing.T, data []byte) []point {
	t.Helper()
	var out []point
	d := lineprotocol.NewDecoderWithBytes(data)
	for d.Next() {
		m, err := d.Measurement()
		if err != nil {
			t.Fatal(err)
		}
		p := point{measurement: string(m), tags: map[string]string{}, fields: map[string]lineprotocol.Value{}}
		for {
			k, v, err := d.NextTag()
			if err != nil {
				t.Fatal(err)
			}
			if k == nil {
				break
			}
			p.tags[string(k)] = string(v)
			p.keys = append(p.keys, string(k))
		}
		for {
			k, v, err := d.NextField()
			if err != nil {
				t.Fatal(err)
			}
			if k == nil {
				break
			}
			p.fields[string(k)] = v
		}
		if p.time, err = d.Time(lineprotocol.Nanosecond, time.Time{}); err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func records(t *testing.T) map[string]record.Record {
	t.Helper()
	files, err := filepath.Glob("../record/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden records: %v", err)
	}
	out := map[string]record.Record{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var r record.Record
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".json")] = r
	}
	return out
}

func encode(t *testing.T, r record.Record) []point {
	t.Helper()
	b, err := Record(r)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, b)
}

func TestJobLine(t *testing.T) {
	p := encode(t, records(t)["busy"])
	if n := len(p); n != 2+0+2*4 {
		t.Fatalf("%d lines: want 2 jobs and 4 moments of 2 GPUs", n)
	}
	j := p[0]
	if !slices.Equal(j.keys, []string{"cluster", "gpu", "model", "node", "partition", "uuid"}) || j.measurement != JobMeasurement {
		t.Errorf("%s %v", j.measurement, j.keys)
	}
	for field, want := range map[string]any{
		"job_id": int64(4711), "restart": int64(0), "user": "ada", "account": "physics", "uid": int64(1815), "state": "completed",
		"sm_active_mean_ratio": 0.82, "energy_joules": 355200.0, "memory_total_bytes": int64(80 << 30), "elapsed_seconds": 600.0,
		"ecc_uncorrected_dram_errors": int64(0), "coverage_ratio": 1.0, "sm_active_source": "counter", "no_start": false,
	} {
		if got := j.fields[field].Interface(); got != want {
			t.Errorf("%s = %v (%T), want %v", field, got, got, want)
		}
	}
	if _, ok := j.fields["memory_clock_mean_mhz"]; ok {
		t.Error("an unknown value has a field")
	}
}

// In a store a point is its measurement, tags and time; no two of a record, or of
// two jobs that end together on one GPU, may be the same.
func TestPointsAreUnique(t *testing.T) {
	other := records(t)["busy"]
	other.Job.ID++
	all := records(t)
	all["other job"] = other
	seen := map[string]string{}
	for _, name := range []string{"busy", "other job", "ecc"} {
		r := all[name]
		r.Job.ID += uint32(len(name))
		for _, p := range encode(t, r) {
			key := fmt.Sprint(p.measurement, p.tags, p.time.UnixNano())
			if was, ok := seen[key]; ok {
				t.Errorf("%s and %s: %s", was, name, key)
			}
			seen[key] = name
		}
	}
}

// Two events of one kind in one moment are two points.
func TestEventsOfOneMoment(t *testing.T) {
	r := records(t)["ecc"]
	r.Events = append(r.Events, r.Events[0])
	var times []time.Time
	for _, p := range encode(t, r) {
		if p.measurement == EventMeasurement && p.fields["xid"].IntV() == 95 {
			times = append(times, p.time)
		}
	}
	if len(times) != 2 || times[0].Equal(times[1]) {
		t.Errorf("times %v", times)
	}
}

// The type of a field must be the same in every line ever written: stores refuse
// a whole batch otherwise.
func TestFieldTypesAreStable(t *testing.T) {
	kinds := map[string]lineprotocol.ValueKind{}
	for name, r := range records(t) {
		for _, p := range encode(t, r) {
			if !slices.IsSorted(p.keys) {
				t.Errorf("%s: tags %v are not sorted", name, p.keys)
			}
			for f, v := range p.fields {
				key := p.measurement + "." + f
				if was, ok := kinds[key]; ok && was != v.Kind() {
					t.Errorf("%s: %s is %v and %v", name, key, was, v.Kind())
				}
				kinds[key] = v.Kind()
			}
		}
	}
}

func TestHostileStrings(t *testing.T) {
	r := records(t)["ecc"]
	evil := "a b,c=d\\\n\"x\x1b[31m\x00slurm_gpu_job injected=1"
	r.Job.User, r.Job.Account, r.Job.Partition, r.Node = evil, evil, evil, evil
	r.GPUs[0].Model = evil
	r.Events[0].Process = evil
	for _, p := range encode(t, r) {
		if strings.ContainsAny(p.tags["node"], "\n\x1b\x00") {
			t.Errorf("node %q", p.tags["node"])
		}
		if _, ok := p.fields["injected"]; ok {
			t.Error("a string became a field")
		}
	}
}

func TestEmptyTagsAreLeftOut(t *testing.T) {
	r := records(t)["busy"]
	r.Cluster, r.Job.Partition = "", " "
	if p := encode(t, r)[0]; slices.Contains(p.keys, "cluster") || slices.Contains(p.keys, "partition") {
		t.Errorf("tags %v", p.keys)
	}
}

func TestMIGLine(t *testing.T) {
	p := encode(t, records(t)["mig"])[0]
	if p.tags["mig"] != "2g.20gb" || !strings.HasPrefix(p.tags["uuid"], "MIG-") {
		t.Errorf("tags %v", p.tags)
	}
}

func TestHealth(t *testing.T) {
	id := gpu.Identity{Index: 3, UUID: "GPU-3", Name: "NVIDIA H100"}
	n := gpu.Node{GPUs: []gpu.GPU{{Identity: id, Readings: gpu.Readings{gpu.Temperature: 61}}}}
	about := func(code string, o check.Outcome, g *gpu.Identity) verdict.Finding {
		return verdict.Finding{Finding: check.Finding{Code: code, Outcome: o, GPU: g}}
	}
	v := verdict.Verdict{
		Outcome: check.Fail, Action: verdict.Drain, Answer: gpu.AnswerWhole, Reason: "LOST gpu=3 GPU-3",
		Findings: []verdict.Finding{about("LOST", check.Fail, &id), about("PERSIST", check.Warn, &id), about("COUNT", check.Fail, nil)},
		Checks: []verdict.Result{
			{Check: "gpu-lost", Outcome: check.Fail, Text: "fell off the bus", Seconds: 0.00000125}, {Check: "mig-empty", Outcome: check.Skip},
		},
	}
	b, err := Health("lab", "node01", n, v, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	const want = `slurm_gpu_health,cluster=lab,node=node01 outcome="fail",action="drain",answer="whole",reason="LOST gpu=3 GPU-3",gpus=1i,failed=2i,warned=1i,errors=0i,codes="LOST,COUNT" 1000000000
slurm_gpu_health,cluster=lab,gpu=3,model=NVIDIA\ H100,node=node01,uuid=GPU-3 failed=1i,warned=1i,errors=0i,codes="LOST",temperature_celsius=61 1000000000
slurm_gpu_health,check=gpu-lost,cluster=lab,node=node01 outcome="fail",result=3i,seconds=1.25e-06 1000000000
slurm_gpu_health,check=mig-empty,cluster=lab,node=node01 outcome="skip" 1000000000
`
	if string(b) != want {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}
	points := decode(t, b)
	if len(points) != 4 {
		t.Fatalf("%d points", len(points))
	}
	if p := points[1]; p.measurement != HealthMeasurement || p.fields["temperature_celsius"].FloatV() != 61 {
		t.Errorf("%+v", p)
	}
	if _, ok := points[1].fields["recovery_action"]; ok {
		t.Error("an unknown recovery action has a field")
	}
}
