package gpu

import (
	"encoding/json"
	"testing"
)

// Unknown is null or absent and never zero, in both directions.
func TestOptJSON(t *testing.T) {
	type value struct {
		A Opt[int]  `json:"a"`
		B Opt[int]  `json:"b,omitzero"`
		C Opt[bool] `json:"c,omitzero"`
	}
	for want, v := range map[string]value{
		`{"a":null}`:              {},
		`{"a":0,"b":0}`:           {A: Some(0), B: Some(0)},
		`{"a":7,"c":false}`:       {A: Some(7), C: Some(false)},
		`{"a":-1,"b":2,"c":true}`: {A: Some(-1), B: Some(2), C: Some(true)},
	} {
		b, err := json.Marshal(v)
		if err != nil || string(b) != want {
			t.Errorf("%+v: %s, %v; want %s", v, b, err, want)
		}
		var back value
		if err := json.Unmarshal(b, &back); err != nil || back != v {
			t.Errorf("%s: read back as %+v, %v", b, back, err)
		}
	}
	set := value{A: Some(5)}
	if err := json.Unmarshal([]byte(`{"a":null}`), &set); err != nil || set.A.IsSet() {
		t.Errorf("null left %+v, %v", set.A, err)
	}
	if err := json.Unmarshal([]byte(`{"a":"x"}`), &set); err == nil || set.A.IsSet() {
		t.Errorf("a string became %+v, %v", set.A, err)
	}
}

func TestOptGet(t *testing.T) {
	if v, ok := (Opt[int]{}).Get(); ok || v != 0 {
		t.Errorf("unset: %d, %t", v, ok)
	}
	if v, ok := Some(0).Get(); !ok || v != 0 {
		t.Errorf("zero: %d, %t", v, ok)
	}
	if got := (Opt[string]{}).Or("unknown"); got != "unknown" {
		t.Errorf("Or: %q", got)
	}
}
