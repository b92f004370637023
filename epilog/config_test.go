package main

import (
	"testing"

	"gpuhooks/internal/lab/stage"
)

// A configuration that breaks under a running job costs nothing: the last good
// copy holds, and the record says so, for those who look into the store.
func TestConfigurationBreaks(t *testing.T) {
	s := stage.New(t, "dgx-h100", "enforce")
	job := stage.Job{ID: 61, GPUs: "2"}
	quiet(t, s.Prolog(job))
	s.Write("gpuhooks.toml", s.Read("gpuhooks.toml")+"\n[drain\n")
	expect(t, s.Epilog(job), 0, "gpuhooks.toml:", "last good copy")
	if r := recordOf(t, s, "61.0"); !r.Quality.ConfigBroken {
		t.Errorf("quality %+v", r.Quality)
	}
}
