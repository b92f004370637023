package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

// testNode is a node whose gpu-probe says what answer holds, and whose Slurm is
// three scripts: they log their calls, and scontrol remembers a reason.
type testNode struct {
	t       *testing.T
	dir     string
	toml    string // beside what configure writes
	mode    string
	answer  []driver.Line
	environ []string
	now     func() time.Time
}

func newNode(t *testing.T) *testNode {
	t.Helper()
	n := &testNode{t: t, dir: t.TempDir(), mode: "enforce", now: time.Now, environ: []string{"SLURMD_NODENAME=n1"}}
	n.write("slurm.conf", "ClusterName=test\nGresTypes=gpu\nProctrackType=proctrack/cgroup\nNodeName=n1 Gres=gpu:2\nNodeName=cpu CPUs=2\n", 0o644)
	n.write("gres.conf", "NodeName=n1 Name=gpu File=/dev/nvidia[0-1]\n", 0o644)
	n.write("root/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n", 0o644)
	n.write("probe", "#!/bin/sh\necho asked >>"+n.path("asked")+"\ncat "+n.path("answer")+"\n", 0o755)
	n.write("reason", "", 0o644)
	n.write("calls", "", 0o644)
	n.write("scontrol", `#!/bin/sh
[ "$1" = --version ] && { echo "slurm-wlm 22.05.8"; exit; }
echo "scontrol $*" >>`+n.path("calls")+`
state=IDLE; reason=$(cat `+n.path("reason")+`)
case "$*" in
*show*) [ -n "$reason" ] && { state=IDLE+DRAIN; reason=" Reason=$reason [root@2026-07-01T12:00:00]"; }
	echo "NodeName=n1 State=$state Version=22.05.8$reason" ;;
*[Rr]eason=*) for a; do case $a in [Rr]eason=*) printf %s "${a#*=}" >`+n.path("reason")+`;; esac; done ;;
*) : >`+n.path("reason")+` ;;
esac
`, 0o755)
	n.write("sinfo", "#!/bin/sh\necho sinfo >>"+n.path("calls")+"\necho 'n1|idle|Unknown|root|none'\n", 0o755)
	n.write("squeue", "#!/bin/sh\necho squeue >>"+n.path("calls")+"\necho '17|17|N/A|RUNNING'\n", 0o755)
	n.answer = healthy()
	return n
}

// healthy is a whole answer of two cards.
func healthy() []driver.Line {
	p := gpu.Presence{ModuleLoaded: gpu.Some(true), Control: gpu.Some(true), DriverLoad: "7", DeviceMinors: []int{0, 1}}
	out := []driver.Line{
		{Hello: &driver.Hello{Protocol: driver.Protocol}}, {Presence: &p}, {Kernel: &driver.Kernel{LastSeq: 100}},
		{Driver: &gpu.Driver{Version: gpu.Some("580.95.05"), Count: gpu.Some(2)}},
	}
	for i := range 2 {
		g := gpu.GPU{
			Identity: gpu.Identity{
				Index: i, Minor: gpu.Some(i), UUID: fmt.Sprintf("GPU-%d", i), PCI: fmt.Sprintf("00000000:%d0:00.0", i+1),
				Name: "NVIDIA H100", PCIeMaxWidth: gpu.Some(16), PCIeMaxGen: gpu.Some(5),
			},
			Complete: true,
			Health: gpu.Health{
				RecoveryAction: gpu.Some(0), PCIeWidth: gpu.Some(16), PCIeGen: gpu.Some(1), Persistence: gpu.Some(true),
				MemoryTotal: gpu.Some(uint64(80 << 30)), RowRemap: gpu.Some(gpu.RowRemap{}),
			},
			Counters: gpu.Counters{gpu.ECCVolUncorrDRAM: 0},
			Readings: gpu.Readings{gpu.Temperature: 31, gpu.Power: 70.4, gpu.MemoryUsed: 3 << 29},
		}
		p.Proc = append(p.Proc, gpu.ProcGPU{Address: g.PCI, UUID: g.UUID, Minor: g.Minor})
		out = append(out, driver.Line{GPU: &g})
	}
	host := gpu.Host{Clock: gpu.Some(gpu.Clock{Synchronised: true})}
	return append(out, driver.Line{Host: &host}, driver.Line{Done: &driver.Done{}})
}

// lose makes card 1 fall off the bus.
func (n *testNode) lose() {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	n.answer[2].Kernel.LastSeq = 120
	n.answer[2].Kernel.Events = []xid.Event{{Kind: xid.KindXID, Code: 79, PCI: "00000000:20:00.0", Seq: 110, Last: 110, Count: 1, First: at, Until: at}}
	n.answer[5].GPU.Faults = []gpu.Fault{{Call: "nvmlDeviceGetTemperature", Code: 15, Kind: gpu.FaultLost}}
}

func (n *testNode) path(name string) string { return filepath.Join(n.dir, name) }

func (n *testNode) write(name, text string, mode os.FileMode) {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Dir(n.path(name)), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(n.path(name), []byte(text), mode); err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) read(name string) string {
	n.t.Helper()
	b, err := os.ReadFile(n.path(name))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	return string(b)
}

// calls returns what Slurm was asked since the last time.
func (n *testNode) calls() string {
	s := n.read("calls")
	n.write("calls", "", 0o644)
	return strings.TrimSpace(s)
}

func (n *testNode) configure() {
	var b strings.Builder
	fmt.Fprintf(&b, "mode = %q\n[paths]\nroot = %q\n", n.mode, n.path("root"))
	for _, key := range []string{"run", "spool", "state", "fallback", "probe"} {
		fmt.Fprintf(&b, "%s = %q\n", key, n.path(key))
	}
	fmt.Fprintf(&b, "[slurm]\nnodename = \"n1\"\nconf = %q\n", n.path("slurm.conf"))
	for _, key := range []string{"scontrol", "sinfo", "squeue", "sacct"} {
		fmt.Fprintf(&b, "%s = %q\n", key, n.path(key))
	}
	if !strings.Contains(n.toml, "[drain]") {
		n.toml += "[drain]\ndelay = \"0s\"\n"
	}
	n.write("gpuhooks.toml", b.String()+n.toml, 0o644)
}

// run runs the program as slurmd does.
func (n *testNode) run(args ...string) (code int, stdout, stderr string) {
	n.t.Helper()
	n.configure()
	var answer bytes.Buffer
	for _, l := range n.answer {
		b, err := json.Marshal(l)
		if err != nil {
			n.t.Fatal(err)
		}
		answer.Write(append(b, '\n'))
	}
	n.write("answer", answer.String(), 0o644)
	var out, errs bytes.Buffer
	env := cli.Env{
		Program: "gpu-healthcheck", Args: append([]string{"--config", n.path("gpuhooks.toml")}, args...),
		Environ: n.environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: n.now,
	}
	code = cli.Run(env, newCommand)
	return code, out.String(), errs.String()
}

// person runs the program as somebody at a terminal does.
func (n *testNode) person(args ...string) (code int, stdout, stderr string) {
	n.t.Helper()
	n.environ = []string{"PATH=/usr/bin"}
	return n.run(args...)
}
