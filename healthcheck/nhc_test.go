package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// nhcDriver is what NHC 1.4 and 1.5 do with a check: load every *.nhc, run the line
// with eval, and take a status other than 0 for a failure unless die has told of
// it. check_cmd_status is NHC's in what it does with a command.
const nhcDriver = `
TIMEOUT=30; FAIL_CNT=0; CHECK_DIED=0; SILENT=0
die() { RC=$1; shift; CHECK_DIED=1; echo "die $RC $*"; if [[ "$NHC_CHECK_ALL" == 1 ]]; then ((FAIL_CNT++)); return 0; fi; exit $RC; }
log() { echo "log $*"; }
check_cmd_status() {
	local RET CMD_RETVAL CMD_TIMEOUT=5
	OPTIND=1
	while getopts ":r:t:" OPTION; do case "$OPTION" in r) CMD_RETVAL="$OPTARG";; t) CMD_TIMEOUT="$OPTARG";; *) die 1 usage; return 1;; esac; done
	shift $((OPTIND-1))
	"$@" </dev/null >&/dev/null & wait $!; RET=$?
	[[ $RET -ne ${CMD_RETVAL:-0} ]] && { die 1 "$FUNCNAME:  $RET returned"; return 1; }
	return 0
}
set -f
. "$NHC"
IFS=''
eval $CHECK
RET=$?
if [[ $RET != 0 && $CHECK_DIED == 0 ]]; then echo "fallback $RET"; fi
echo "end $RET, $FAIL_CNT failed"
`

// nhc runs one line of nhc.conf.
func (n *testNode) nhc(check string, environ ...string) (out string) {
	n.t.Helper()
	script, err := filepath.Abs("../scripts/nhc/gpuhooks.nhc")
	if err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", nhcDriver)
	cmd.Env = append([]string{
		"PATH=/usr/bin:/bin", "NHC=" + script, "CHECK=" + check, "SLURMD_NODENAME=n1",
		"GPUHOOKS_HEALTHCHECK=" + n.path("gpu-healthcheck"), "GPUHOOKS_CONFIG=/etc/x.toml", "GPUHOOKS_TIMEOUT=1",
	}, environ...)
	b, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		n.t.Fatal(err)
	}
	return string(b)
}

func TestNHC(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("NHC is written in bash, which is not here")
	}
	n := newNode(t)
	// cached is what --cached answers, look what a look does.
	program := func(cached, look string) {
		n.write("looked", "", 0o644)
		n.write("gpu-healthcheck", "#!/bin/sh\n[ \"$1 $2\" = '--config /etc/x.toml' ] || exit 99\nshift 2\ncase \"$*\" in\n"+
			"--cached*5m) "+cached+";;\n--cached*1m) printf 'n1: fail, 0s ago\\n  gpu-lost: fail: GPU 1: fell off\\n  persistence: warn: off\\n'; exit 1;;\n"+
			"--cached*2m) exit 3;;\n--json) echo looked >>"+n.path("looked")+"; "+look+";;\n*) exit 98;;\nesac\n", 0o755)
	}
	const fails = `printf 'n1: fail, 3s ago\n  gpu-lost: fail: GPU 3: x\n  ecc: fail: GPU 4: y\n'; exit 1`
	tests := []struct {
		name, cached, look, check string
		environ                   []string
		want                      string
		looked                    bool
	}{
		{name: "good by the last verdict", cached: "exit 0", check: "check_gpuhooks", want: "end 0, 0 failed\n"},
		{name: "bad by the last verdict", cached: fails, check: "check_gpuhooks", want: "die 1 check_gpuhooks:  gpu-lost: fail: GPU 3: x; ecc: fail: GPU 4: y\n"},
		{name: "none, then good", cached: "exit 3", look: "exit 0", check: "check_gpuhooks", want: "end 0, 0 failed\n", looked: true},
		{name: "none, then bad", cached: "exit 3", look: "exit 1", check: "check_gpuhooks", want: "die 1 check_gpuhooks:  gpu-lost: fail: GPU 1: fell off\n", looked: true},
		{name: "fresh", cached: "exit 1", look: "exit 0", check: "check_gpuhooks_fresh", want: "end 0, 0 failed\n", looked: true},
		{name: "fresh and bad", cached: "exit 0", look: "exit 1", check: "check_gpuhooks_fresh", want: "die 1 check_gpuhooks_fresh:  gpu-lost: fail: GPU 1: fell off\n", looked: true},
		{name: "only cached", cached: "exit 3", check: "check_gpuhooks_cached", want: "log check_gpuhooks_cached:  could not look (status 3)\nend 0, 0 failed\n"},
		{name: "only cached, by age", cached: "exit 0", check: "check_gpuhooks_cached -a 2m -s", want: "die 1 check_gpuhooks_cached:  could not look (status 3)"},
		{name: "could not look", cached: "exit 3", look: "exit 3", check: "check_gpuhooks", want: "log check_gpuhooks:  could not look (status 3)\nend 0, 0 failed\n", looked: true},
		{name: "could not look, strict", cached: "exit 3", look: "exit 3", check: "check_gpuhooks -s", want: "die 1 check_gpuhooks:  could not look (status 3)", looked: true},
		{name: "hangs", cached: "exit 3", look: "exec sleep 60", check: "check_gpuhooks", want: "log check_gpuhooks:  could not look (status 124)\nend 0, 0 failed\n", looked: true},
		{name: "broken configuration", cached: "exit 2", look: "exit 2", check: "check_gpuhooks", want: "log check_gpuhooks:  could not look (status 2)\nend 0, 0 failed\n", looked: true},
		{name: "all checks (-a)", cached: fails, check: "check_gpuhooks", environ: []string{"NHC_CHECK_ALL=1"}, want: "die 1 check_gpuhooks:  gpu-lost: fail: GPU 3: x; ecc: fail: GPU 4: y\nend 1, 1 failed\n"},
		{name: "wrong option", cached: "exit 0", check: "check_gpuhooks -x", want: "die 1 check_gpuhooks:  Invalid option:  -x\n"},
		{name: "without an argument", cached: "exit 0", check: "check_gpuhooks -a", want: "die 1 check_gpuhooks:  Option -a requires an argument.\n"},
		{name: "check_cmd_status, good", cached: "exit 0", check: "check_cmd_status -t 20 -r 0 $GPUHOOKS_HEALTHCHECK --config /etc/x.toml --cached --max-age 5m", want: "end 0, 0 failed\n"},
		{name: "check_cmd_status, bad", cached: "exit 1", check: "check_cmd_status -t 20 -r 0 $GPUHOOKS_HEALTHCHECK --config /etc/x.toml --cached --max-age 5m", want: "die 1 check_cmd_status:  1 returned\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n.t = t
			program(tt.cached, tt.look)
			if got := n.nhc(tt.check, tt.environ...); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if looked := n.read("looked") != ""; looked != tt.looked {
				t.Errorf("looked: %t", looked)
			}
		})
	}
	if err := os.Remove(n.path("gpu-healthcheck")); err != nil {
		t.Fatal(err)
	}
	if got := n.nhc("check_gpuhooks"); !strings.HasPrefix(got, "log check_gpuhooks:  could not look (status 127)\nend 0") {
		t.Errorf("not installed: %q", got)
	}
}
