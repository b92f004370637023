package record

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// docs/record.md is made of the sources, the field table and a golden record, so
// that it cannot become stale: go test ./internal/record -update writes it.
func TestDocs(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(docsHead)
	b.WriteString(structTables(t))
	b.WriteString(docsFields)
	b.WriteString("\n| field | unit | type | from | over GPUs | what |\n|---|---|---|---|---|---|\n")
	for _, f := range Fields() {
		kind := "float"
		if f.Unit.Integer() {
			kind = "integer"
		}
		var from []string
		for _, s := range f.Sources {
			if s == "counter" && f.Stat != Mean && f.Stat != Total {
				continue // cycles give a mean only
			}
			from = append(from, string(s))
		}
		doc := f.Doc
		if f.Stat != Total && f.Stat != f.Stats[0] {
			doc = statWords[f.Stat] + " of it"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", f.Field, f.Unit, kind, strings.Join(from, ", "), f.FoldOver(), doc)
	}
	b.WriteString(docsTail)
	b.WriteString("```json\n" + compact(string(encode(t, Build(scenarios()["lowsm"])))) + "```\n")
	golden(t, "../../docs/record.md", b.Bytes())
}

var statWords = map[Stat]string{
	Max: "maximum", Min: "minimum", P05: "5th percentile, by time,", P50: "median, by time,", P95: "95th percentile, by time,",
}

const docsHead = `# The job record

<!-- made by: go test ./internal/record -update -->

One record is written per run of a job and node: by gpu-epilog, as
` + "`<spool>/records/<job>.<restart>.<node>.json`" + `, with the same content as line protocol
in ` + "`….line`" + ` beside it. Both are written whole or not at all, and writing one again
replaces it. Where the spool cannot be written they go to the fallback directory
(` + "`/run/gpuhooks/unsent`" + `).

Three rules hold for every value:

- **Unknown is null, never 0.** A null has the source ` + "`none`" + ` and says why.
- Names end with the unit. Ratios are 0..1, times RFC 3339 UTC, durations seconds.
- A field never changes its type or meaning under the schema ` + "`gpuhooks.job/1`" + `. Readers
  must accept fields that they do not know and fields that are missing.

## The record
`

const docsFields = `
## The values of a GPU

Every GPU has all of these in ` + "`values`" + `, each with its source:

| source | means |
|---|---|
| ` + "`counter`" + ` | the difference of two readings of a counter, exact for any length of run |
| ` + "`gpm`" + ` | samples of NVML's GPM (Hopper and newer) |
| ` + "`dcgm`" + ` | samples of DCGM |
| ` + "`nvml`" + ` | samples or readings of NVML |
| ` + "`none`" + ` | unknown; ` + "`why`" + ` says why |

"from" lists the possible sources, best first. "over GPUs" is how the values of
several GPUs become one in a report; means are weighted by run time, and GPUs whose
value is unknown are left out.
`

const docsTail = `
## Line protocol

| measurement | lines | tags | time |
|---|---|---|---|
| ` + "`slurm_gpu_job`" + ` | one per GPU | cluster, gpu (index), mig (profile), model, node, partition, uuid | of the record |
| ` + "`slurm_gpu_event`" + ` | one per event | cause, cluster, code, kind, node, uuid | of the event |
| ` + "`slurm_gpu_sample`" + ` | one per GPU and moment of the thinned series | cluster, gpu, mig, node, uuid | of the sample |
| ` + "`slurm_gpu_health`" + ` | at a look one of the node, one per GPU (gpu, model, uuid), one per check (check) | check, cluster, gpu, model, node, uuid | of the look |

The fields of ` + "`slurm_gpu_job`" + ` are those of the table above, as integers or floats as
it says, and: job_id, restart, uid, exit_code, signal, start_unix_seconds,
end_unix_seconds, gaps, counter_resets (integers), elapsed_seconds, coverage_ratio
(floats), shared_gpu, no_start, sampler_missing, events_incomplete,
config_broken (booleans), user,
account, qos, state, pci, sm_active_source, energy_source (strings). An unknown value
is absent. Job id and user are fields, not tags: as tags they would make a new series
for every job. The last three digits of a time (nanoseconds) are the job's number, so
that jobs that share a GPU and end together stay apart.

## An example

One GPU that GPU-Util calls full and of which 6 % had work.

`

// structTables documents the structs and named constants of record.go.
func structTables(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "record.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	constants := map[string]string{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); ok {
				value := strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)
				constants[id.Name] += fmt.Sprintf("| `%s` | %s |\n", value, comment(v.Comment))
			}
		}
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		spec := g.Specs[0].(*ast.TypeSpec)
		doc := strings.ReplaceAll(strings.TrimSpace(g.Doc.Text()), "\n", " ")
		st, isStruct := spec.Type.(*ast.StructType)
		switch {
		case isStruct:
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| key | type | what |\n|---|---|---|\n", spec.Name.Name, doc)
			for _, f := range st.Fields.List {
				key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
				what := comment(f.Comment)
				if what == "" {
					t.Errorf("record.go: %s.%s has no comment", spec.Name.Name, f.Names[0].Name)
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, jsonType(f.Type), what)
			}
		case constants[spec.Name.Name] != "":
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| value | means |\n|---|---|\n%s", spec.Name.Name, doc, constants[spec.Name.Name])
		}
	}
	return b.String()
}

func comment(c *ast.CommentGroup) string {
	return strings.ReplaceAll(strings.TrimSpace(c.Text()), "|", "\\|")
}

// jsonType names a Go type as JSON shows it.
func jsonType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		switch e.Name {
		case "int", "uint32", "uint64":
			return "integer"
		case "float64":
			return "number"
		case "bool":
			return "boolean"
		case "Word", "Flag", "Why", "Cause":
			return "string (" + e.Name + ")"
		}
		return e.Name
	case *ast.StarExpr:
		return jsonType(e.X)
	case *ast.ArrayType:
		return "list of " + jsonType(e.Elt)
	case *ast.MapType:
		return "object of " + jsonType(e.Value)
	case *ast.IndexExpr:
		return jsonType(e.Index) + " or null"
	case *ast.SelectorExpr:
		switch e.Sel.Name {
		case "Time":
			return "time"
		case "Sample":
			return "{t, v}"
		case "Fault":
			return "{call, code, kind, text}"
		}
		return "string"
	}
	return "?"
}

// compact puts objects without members of their own on one line.
func compact(s string) string {
	s = regexp.MustCompile(`\{[^{}\[\]]*\}`).ReplaceAllStringFunc(s, func(m string) string {
		if len(strings.Fields(m)) > 12 {
			return m
		}
		return strings.Join(strings.Fields(m), " ")
	})
	return s
}
