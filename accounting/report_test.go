package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/report"
	"gpuhooks/internal/runs"
)

// site is a configuration with a spool, and the records of two jobs in it: 4711
// on node01 in the spool, on node02 in the fallback directory.
type site struct{ dir, config string }

func newSite(t *testing.T) site {
	t.Helper()
	s := site{dir: t.TempDir()}
	s.config = filepath.Join(s.dir, "gpuhooks.toml")
	s.write(t, "gpuhooks.toml", `
[paths]
run = "`+s.dir+`/run"
spool = "`+s.dir+`/spool"
fallback = "`+s.dir+`/run/unsent"
[slurm]
squeue = "`+s.dir+`/squeue"
sacct = "`+s.dir+`/sacct"
`)
	data, err := os.ReadFile("../internal/record/testdata/lowsm.json")
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "spool/records/4711.0.node01.json", string(data))
	s.write(t, "run/unsent/4711.0.node02.json", strings.ReplaceAll(string(data), "node01", "node02"))
	return s
}

func (s site) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (s site) run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(cli.Env{
		Program: "gpu-accounting", Args: append([]string{"--config", s.config}, args...),
		Stdout: &out, Stderr: &errs, Now: func() time.Time { return time.Unix(0, 0).UTC() },
	}, newCommand)
	return code, out.String(), errs.String()
}

func TestReport(t *testing.T) {
	s := newSite(t)
	s.write(t, "squeue", "#!/bin/sh\ncase \"$*\" in *120_3*) echo '4711|120|3|COMPLETED';; *) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1;; esac\n")
	s.write(t, "sacct", "#!/bin/sh\nexit 0\n")
	s.write(t, "spool/records/4712.0.node01.json", "{ half")
	mark := func(job uint32) runs.Name { return runs.Name{Job: job} }
	if err := runs.Dir(s.dir+"/run").Create(mark(4713), runs.Job{Schema: runs.JobSchema}); err != nil {
		t.Fatal(err)
	}
	if err := runs.Dir(s.dir+"/run").Refuse(mark(4714), runs.Mark{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"report 4711", 0, "(node01,node02)", ""},
		{"report 4711 --dir " + s.dir + "/run/unsent", 0, "node02", ""},
		{"report 120_3", 0, "Job ID: 120_3 (4711)", ""},
		{"report 120_4", 1, "", "job 120_4 is not known to Slurm"},
		{"report 4712", 1, "", "4712.0.node01.json: not a record"},
		{"report 4713", 1, "", "job 4713 is still running on this node"},
		{"report 4714", 1, "", "job 4714 was refused on this node"},
		{"report 4715", 1, "", "job 4715: no record in"},
		{"report nonsense", 2, "", `"nonsense" is not a job id`},
		{"report 99999999999", 2, "", "is not a job id"},
		{"report", 2, "", "accepts 1 arg(s)"},
		{"report 4711 --format csv", 2, "", "want text or json"},
		{"report 4711 --config /nowhere", 2, "", "/nowhere"},
		{"report 4711 --wrong", 2, "", "unknown flag"},
		{"report --help", 0, "EXIT STATUS", ""},
		{"", 0, "report", ""},
	} {
		code, stdout, stderr := s.run(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || (c.stdout == "") != (stdout == "") {
			t.Errorf("%s: exit %d, want %d\nstdout: %s\nstderr: %s", c.args, code, c.code, stdout, stderr)
		}
		if strings.Contains(stdout, "\x1b") {
			t.Errorf("%s: colour in a pipe", c.args)
		}
	}
}

// Without Slurm's commands an array's task cannot be resolved, and the sentence
// says so; a plain number needs no Slurm.
func TestReportWithoutSlurm(t *testing.T) {
	s := newSite(t)
	if code, _, stderr := s.run("report", "120_3"); code != cli.Blind || !strings.Contains(stderr, "could not be asked of Slurm") || !strings.Contains(stderr, "hint: ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := s.run("report", "4711"); code != cli.OK {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestReportJSON(t *testing.T) {
	s := newSite(t)
	for _, args := range [][]string{{"report", "4711", "--json"}, {"report", "--format=json", "4711"}} {
		code, stdout, stderr := s.run(args...)
		var d report.Document
		if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != 0 {
			t.Fatalf("exit %d, %v: %s", code, err, stderr)
		}
		if d.Schema != report.Schema || d.JobID != 4711 || len(d.Records) != 2 || d.Totals["energy_joules"].Or(0) != 489600 {
			t.Errorf("%+v", d)
		}
	}
	code, stdout, stderr := s.run("report", "4799", "--json")
	if code != 1 || stdout != "" || !strings.Contains(stderr, `"schema": "gpuhooks.error/1"`) {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
