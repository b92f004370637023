//go:build cgo

package nvml

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"gpuhooks/internal/sim"
)

// In v0.13.0 of the binding this struct was 1624 bytes long, and every metric
// but the first was read from the wrong place.
func TestGpmMetricHasTheDriversSize(t *testing.T) {
	if got := unsafe.Sizeof(nvml.GpmMetric{}); got != 40 {
		t.Errorf("nvml.GpmMetric is %d bytes, the driver's is 40", got)
	}
	if got := unsafe.Sizeof(gpmMetric{}); got != 40 {
		t.Errorf("gpmMetric is %d bytes, the driver's is 40", got)
	}
	if got, want := len(gpmAsk{}.metrics), len(nvml.GpmMetricsGetType{}.Metrics); got != want {
		t.Errorf("gpmAsk has room for %d metrics, nvml.h for %d", got, want)
	}
}

func TestAlwaysPresentIsInEveryDriver(t *testing.T) {
	for _, branch := range sim.Branches() {
		have, err := sim.Exports(branch)
		if err != nil {
			t.Fatal(err)
		}
		for _, symbol := range alwaysPresent {
			if !slices.Contains(have, symbol) {
				t.Errorf("driver %s has no %s", branch, symbol)
			}
		}
	}
}

// symbolsOf returns the C symbols that a method of the binding may call, by
// its name. The binding names them alike, but for a few.
func symbolsOf(t *testing.T) map[string][]string {
	t.Helper()
	m := map[string][]string{}
	add := func(typ reflect.Type, prefix string) {
		for i := range typ.NumMethod() {
			name := typ.Method(i).Name
			m[name] = append(m[name], prefix+name)
		}
	}
	add(reflect.TypeFor[nvml.Device](), "nvmlDevice")
	add(reflect.TypeFor[nvml.Interface](), "nvml")
	m["Init"] = []string{"nvmlInit_v2"}
	m["GetUUID"], m["GetName"] = []string{"nvmlDeviceGetUUID"}, []string{"nvmlDeviceGetName"}
	// Methods of nvml.GpmSample.
	m["Free"], m["Get"], m["MigGet"] = []string{"nvmlGpmSampleFree"}, []string{"nvmlGpmSampleGet"}, []string{"nvmlGpmMigSampleGet"}
	delete(m, "Extensions")
	return m
}

// versions are the suffixes with which the binding itself tries newer forms.
var versions = []string{"", "_v2", "_v3", "_v4"}

// TestEveryCallIsGuarded walks this package's source: a call of the binding is
// to a symbol in alwaysPresent, or stands in a function that has asked for its
// symbol before (Library.has). A call that is neither ends the process on an
// older driver.
func TestEveryCallIsGuarded(t *testing.T) {
	methods := symbolsOf(t)
	files := token.NewFileSet()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for _, problem := range unguarded(fn, methods, files, &calls) {
				t.Error(problem)
			}
		}
	}
	if calls < 40 {
		t.Errorf("only %d calls found: this test does not see them", calls)
	}
}

// unguarded returns the calls in fn that an older driver would die of.
func unguarded(fn *ast.FuncDecl, methods map[string][]string, files *token.FileSet, calls *int) []string {
	asked := map[string]token.Pos{}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "has" && len(call.Args) == 1 {
				if lit, ok := call.Args[0].(*ast.BasicLit); ok {
					asked[strings.Trim(lit.Value, `"`)] = call.Pos()
				}
			}
		}
		return true
	})
	var out []string
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || methods[sel.Sel.Name] == nil || ours(sel.X) {
			return true
		}
		*calls++
		for _, symbol := range methods[sel.Sel.Name] {
			if at, ok := asked[symbol]; ok && at < call.Pos() {
				return true
			}
			for _, v := range versions {
				if slices.Contains(alwaysPresent, symbol+v) {
					return true
				}
			}
		}
		out = append(out, fmt.Sprintf("%v: %s is neither in alwaysPresent nor behind has", files.Position(call.Pos()), sel.Sel.Name))
		return true
	})
	return out
}

// ours says that the receiver is not of the binding: an Opt, a package, or the
// Library itself.
func ours(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	if !ok {
		_, call := x.(*ast.CallExpr)
		return call
	}
	return id.Name == "l" || id.Name == "gpu" || id.Name == "nvml" || id.Name == "strings"
}
