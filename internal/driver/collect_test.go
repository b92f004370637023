package driver

import (
	"encoding/json"
	"testing"

	"gpuhooks/internal/gpu"
)

// Early lines are decoded only where nothing better has come, and none is lost.
func TestEarlyLines(t *testing.T) {
	line := func(l Line) []byte {
		t.Helper()
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	card := func(i int, name string, whole bool) []byte {
		g := gpu.GPU{Identity: gpu.Identity{Index: i, Name: name}, Complete: whole}
		return line(Line{GPU: &g})
	}
	var c collector
	for _, b := range [][]byte{
		line(Line{Hello: &Hello{Protocol: Protocol}}),
		card(0, "early", false), card(11, `,"complete":false,`, false), card(2, "early", false),
		card(0, `"complete":false`, true),
		[]byte(`{"gpu":{"index":3,"uuid":"x","complete":false,"health":7}}`),
	} {
		if more, err := c.take(b); !more || err != nil {
			t.Fatalf("%s: more %t, %v", b, more, err)
		}
	}
	if len(c.early) != 3 || len(c.reading.Node.GPUs) != 1 {
		t.Errorf("%d early lines are held, %d cards decoded", len(c.early), len(c.reading.Node.GPUs))
	}
	if c.close() {
		t.Error("whole without its last line")
	}
	gpus, faults := c.reading.Node.GPUs, c.reading.Node.Faults
	if len(gpus) != 3 || !gpus[0].Complete || gpus[1].Index != 2 || gpus[1].Complete || gpus[2].Index != 11 {
		t.Errorf("cards %+v", gpus)
	}
	if len(faults) != 1 || faults[0].Kind != gpu.FaultGarbage {
		t.Errorf("faults %+v", faults)
	}
	if !c.answered() {
		t.Error("an early line is an answer")
	}
}
