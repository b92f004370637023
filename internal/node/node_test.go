package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
	"gpuhooks/internal/xid"
)

// testNode is a node with two cards whose probe answers what reading says.
type testNode struct {
	t       *testing.T
	cfg     config.Config
	now     time.Time
	reading driver.Reading
	asked   []driver.Request
	within  time.Duration // deadline of the last request
}

const boot = "11111111-2222-3333-4444-555555555555"

func newNode(t *testing.T) *testNode {
	t.Helper()
	dir := t.TempDir()
	n := &testNode{t: t, cfg: config.Default(), now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	n.cfg.Mode = config.Enforce
	n.cfg.Paths.Root, n.cfg.Paths.Run = filepath.Join(dir, "root"), filepath.Join(dir, "run")
	n.cfg.Slurm.Conf = filepath.Join(dir, "slurm.conf")
	n.boot(boot)
	n.write(n.cfg.Slurm.Conf, "ClusterName=test\nProctrackType=proctrack/cgroup\nNodeName=n1 Gres=gpu:2\n")
	n.write(filepath.Join(dir, "gres.conf"), "NodeName=n1 Name=gpu File=/dev/nvidia[0-1]\n")
	n.reading = driver.Reading{Answer: gpu.AnswerWhole, Kernel: &driver.Kernel{LastSeq: 100}}
	n.reading.Node = gpu.Node{
		Presence: gpu.Presence{ModuleLoaded: gpu.Some(true), Control: gpu.Some(true), DriverLoad: "7", DeviceMinors: []int{0, 1}},
		Driver:   gpu.Driver{Count: gpu.Some(2)},
	}
	for i := range 2 {
		g := gpu.GPU{
			Identity: gpu.Identity{Index: i, Minor: gpu.Some(i), UUID: fmt.Sprintf("GPU-%d", i), PCI: fmt.Sprintf("00000000:%d0:00.0", i+1)},
			Complete: true, Counters: gpu.Counters{gpu.ECCVolUncorrDRAM: 0},
		}
		n.reading.Node.GPUs = append(n.reading.Node.GPUs, g)
		n.reading.Node.Presence.Proc = append(n.reading.Node.Presence.Proc, gpu.ProcGPU{Address: g.PCI, UUID: g.UUID, Minor: g.Minor})
	}
	return n
}

func (n *testNode) write(path, text string) {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) boot(id string) {
	n.write(filepath.Join(n.cfg.Paths.Root, "proc/sys/kernel/random/boot_id"), id+"\n")
}

func (n *testNode) ask(ctx context.Context, req driver.Request) driver.Reading {
	n.asked = append(n.asked, req)
	if d, ok := ctx.Deadline(); ok {
		n.within = time.Until(d).Round(100 * time.Millisecond)
	}
	r := n.reading
	r.Node.Time = n.now
	r.Node.GPUs = slices.Clone(r.Node.GPUs)
	if req.Host {
		r.Node.Host = &gpu.Host{}
	}
	return r
}

func (n *testNode) options(hook verdict.Hook) Options {
	return Options{Hook: hook, NodeName: "n1", Tier: 1, Now: func() time.Time { return n.now }}
}

// look reads and judges; a second passes.
func (n *testNode) look(hook verdict.Hook, only ...string) (*Look, verdict.Verdict) {
	n.t.Helper()
	l := read(context.Background(), n.cfg, n.options(hook), n.ask)
	v := l.Judge(only, Jobs{Live: []string{"17"}})
	for _, err := range l.Problems {
		n.t.Errorf("problem: %v", err)
	}
	n.now = n.now.Add(time.Second)
	return l, v
}

func (n *testNode) memory() Memory {
	n.t.Helper()
	m, err := Store{Dir: n.cfg.Paths.Run}.Load(boot)
	if err != nil {
		n.t.Fatal(err)
	}
	return m
}

func (n *testNode) log(seq uint64, events ...xid.Event) {
	n.reading.Kernel = &driver.Kernel{Events: events, LastSeq: seq}
}

func (n *testNode) xid(code, card int, seq uint64) xid.Event {
	return xid.Event{Kind: xid.KindXID, Code: code, PCI: n.reading.Node.GPUs[card].PCI, Seq: seq, Last: seq, Count: 1, First: n.now, Until: n.now}
}

func TestHealthyNode(t *testing.T) {
	n := newNode(t)
	l, v := n.look(verdict.HealthCheck)
	if v.Outcome != check.Pass && v.Outcome != check.Warn || v.Action != verdict.None {
		t.Errorf("%s: %v", v.Summary(), v.Findings)
	}
	if !l.First || l.Shared || l.BootID != boot || n.within != 15*time.Second {
		t.Errorf("first %t, shared %t, boot %s, within %s", l.First, l.Shared, l.BootID, n.within)
	}
	if len(l.Inventory.GPUs) != 2 || l.GresErr != nil || l.ConfErr != nil {
		t.Errorf("inventory %+v, %v, %v", l.Inventory, l.GresErr, l.ConfErr)
	}
	l, _ = n.look(verdict.HealthCheck)
	if l.First || n.within != 4*time.Second || n.asked[1].AfterSeq != 100 {
		t.Errorf("second look: first %t, within %s, after %d", l.First, n.within, n.asked[1].AfterSeq)
	}
	m := n.memory()
	if m.Clean.Runs != 2 || m.NodeSeq != 100 || m.GPUs["GPU-1"].Seq != 100 || m.DriverLoad != "7" {
		t.Errorf("memory %+v", m)
	}
	if _, ok := (Store{Dir: n.cfg.Paths.Run}).Cached(boot, Digest(n.cfg), n.now, time.Minute); !ok {
		t.Error("the verdict is not cached")
	}
}

// A job's look at one card must not hide what the log says of the other.
func TestGoodLooksArePerCard(t *testing.T) {
	n := newNode(t)
	n.look(verdict.HealthCheck)
	n.log(120, n.xid(95, 1, 110))
	if _, v := n.look(verdict.Prolog, "GPU-0"); v.Action != verdict.None {
		t.Errorf("another job's card: %s", v.Summary())
	}
	if n.asked[1].AfterSeq != 100 {
		t.Errorf("after %d", n.asked[1].AfterSeq)
	}
	for range 2 { // it stays bad until it is cured
		if _, v := n.look(verdict.Prolog, "GPU-1"); v.Reason != "XID95 gpu=1 GPU-1" || v.Action != verdict.Drain {
			t.Errorf("%s: %s", v.Action, v.Reason)
		}
	}
	if m := n.memory(); m.GPUs["GPU-0"].Seq != 120 || m.GPUs["GPU-1"].Seq != 100 || m.Clean.Runs != 0 {
		t.Errorf("memory %+v", m)
	}
	if n.look(verdict.Prolog, "GPU-1"); n.asked[4].AfterSeq != 100 {
		t.Errorf("after %d: the bad card's events would be lost", n.asked[4].AfterSeq)
	}
	// The driver says that a reset was done.
	none := n.xid(154, 1, 130)
	none.To = gpu.Some(0)
	n.log(140, n.xid(95, 1, 110), none)
	if _, v := n.look(verdict.Prolog, "GPU-1"); v.Action != verdict.None {
		t.Errorf("after the reset: %s", v.Summary())
	}
	if m := n.memory(); m.GPUs["GPU-1"].Seq != 140 {
		t.Errorf("memory %+v", m)
	}
}

// The first look of a boot may find a card bad and another not judged at all.
func TestFirstLookForgetsNothing(t *testing.T) {
	n := newNode(t)
	n.log(50, n.xid(95, 0, 10), n.xid(95, 1, 20))
	if _, v := n.look(verdict.Prolog, "GPU-0"); v.Reason != "XID95 gpu=0 GPU-0" {
		t.Errorf("reason %q", v.Reason)
	}
	if _, v := n.look(verdict.HealthCheck); v.Reason != "XID95 gpu=0,1 GPU-0 GPU-1" {
		t.Errorf("reason %q", v.Reason)
	}
}

func TestECCSinceTheLastGoodLook(t *testing.T) {
	n := newNode(t)
	n.reading.Node.GPUs[0].Counters = gpu.Counters{gpu.ECCVolUncorrDRAM: 4}
	if _, v := n.look(verdict.Prolog); v.Action != verdict.None {
		t.Errorf("never compared: %s", v.Summary())
	}
	n.reading.Node.GPUs[0].Counters = gpu.Counters{gpu.ECCVolUncorrDRAM: 5}
	for range 2 {
		if _, v := n.look(verdict.Epilog); v.Reason != "ECC gpu=0 GPU-0" {
			t.Errorf("reason %q", v.Reason)
		}
	}
}

func TestDriverReload(t *testing.T) {
	n := newNode(t)
	n.look(verdict.HealthCheck)
	n.log(120, n.xid(95, 1, 110))
	n.look(verdict.Prolog) // bad
	n.reading.Node.Presence.DriverLoad = "8"
	n.log(130, n.xid(95, 1, 110))
	n.reading.Node.GPUs[0].Counters = gpu.Counters{gpu.ECCVolUncorrDRAM: 0}
	l, v := n.look(verdict.Prolog)
	if !l.First || v.Action != verdict.None {
		t.Errorf("first %t, %s: what was logged before concerned the driver that is gone", l.First, v.Summary())
	}
	if m := n.memory(); m.DriverLoad != "8" || m.GPUs["GPU-1"].Seq != 130 {
		t.Errorf("memory %+v", m)
	}
}

// Without any line in the log: the card's energy begins anew.
func TestReset(t *testing.T) {
	n := newNode(t)
	energy := func(card int, mj uint64) {
		n.reading.Node.GPUs[card].Counters = gpu.Counters{gpu.EnergyMillijoules: mj}
	}
	energy(0, 500)
	energy(1, 500)
	n.look(verdict.HealthCheck)
	n.log(120, n.xid(95, 1, 110))
	n.look(verdict.HealthCheck) // bad
	n.reading.Node.GPUs[1].Counters = nil
	if _, v := n.look(verdict.HealthCheck); v.Reason != "XID95 gpu=1 GPU-1" {
		t.Errorf("before the reset: %s", v.Summary())
	}
	energy(1, 100)
	energy(0, 600)
	old := n.reading.Kernel.Events
	n.log(130, append(old, n.xid(95, 0, 125))...)
	if _, v := n.look(verdict.HealthCheck); v.Reason != "XID95 gpu=0 GPU-0" {
		t.Errorf("after the reset of the other card: %s", v.Summary())
	}
	energy(1, 90)
	n.log(150, append(old, n.xid(95, 1, 140))...)
	if _, v := n.look(verdict.Prolog, "GPU-1"); v.Reason != "XID95 gpu=1 GPU-1" {
		t.Errorf("once more since the last look: %s", v.Summary())
	}
}

func TestNoAnswer(t *testing.T) {
	n := newNode(t)
	n.look(verdict.HealthCheck)
	whole := n.reading
	n.reading = driver.Reading{Answer: gpu.AnswerNone}
	outcomes := func(after time.Duration) check.Outcome {
		n.now = n.now.Add(after)
		_, v := n.look(verdict.Prolog)
		return v.Checks[0].Outcome
	}
	if got := outcomes(0); got != check.Error {
		t.Errorf("once: %s", got)
	}
	if got := outcomes(10 * time.Second); got != check.Error {
		t.Errorf("again after 11 s: %s", got)
	}
	if got := outcomes(20 * time.Second); got != check.Fail {
		t.Errorf("again after 32 s: %s", got)
	}
	if m := n.memory(); m.GPUs["GPU-1"].Seq != 100 {
		t.Errorf("no answer has changed the good looks: %+v", m)
	}
	n.reading = whole
	n.look(verdict.Prolog)
	n.reading = driver.Reading{Answer: gpu.AnswerNone}
	if got := outcomes(time.Minute); got != check.Error {
		t.Errorf("once since an answer: %s", got)
	}
}

func TestNoAnswerToAnEpilog(t *testing.T) {
	n := newNode(t)
	n.look(verdict.HealthCheck)
	n.reading = driver.Reading{Answer: gpu.AnswerNone}
	for range 3 {
		if _, v := n.look(verdict.Epilog); v.Checks[0].Outcome != check.Error {
			t.Errorf("an epilog has one second: %s", v.Summary())
		}
		n.now = n.now.Add(time.Minute)
	}
	n.reading.Answer = gpu.AnswerStuck
	if _, v := n.look(verdict.Epilog); v.Checks[0].Outcome != check.Fail {
		t.Errorf("a probe in state D: %s", v.Summary())
	}
}

func TestNoAnswerToTheFirstLook(t *testing.T) {
	n := newNode(t)
	n.reading = driver.Reading{Answer: gpu.AnswerNone}
	for range 2 {
		if _, v := n.look(verdict.Prolog); v.Checks[0].Outcome != check.Error || v.Action != verdict.None {
			t.Errorf("a prolog without a look before it: %s", v.Summary())
		}
		n.now = n.now.Add(time.Minute)
	}
	if _, v := n.look(verdict.HealthCheck); v.Checks[0].Outcome != check.Fail {
		t.Errorf("the health check has the time for it: %s", v.Summary())
	}
}

func TestLeftOver(t *testing.T) {
	n := newNode(t)
	stray := gpu.Process{PID: 40, Name: "python", Start: gpu.Some(uint64(1))}
	n.reading.Node.GPUs[1].Processes = []gpu.Process{stray, {PID: 41, Name: "vasp", Job: "17", Start: gpu.Some(uint64(2))}}
	says := func() string {
		_, v := n.look(verdict.Prolog)
		for _, f := range v.Findings {
			if f.Check == "left-over-processes" {
				return f.Text
			}
		}
		return ""
	}
	for i := range 3 {
		if got := says(); got != "" {
			t.Errorf("after %d s: %s", i, got)
		}
	}
	if got := says(); got != "processes of no live job: 40 (python)" {
		t.Errorf("after 3 s: %q", got)
	}
	n.reading.Node.GPUs[1].Processes = nil
	says()
	n.reading.Node.GPUs[1].Processes = []gpu.Process{stray}
	if got := says(); got != "" {
		t.Errorf("gone in between: %s", got)
	}
	n.write(n.cfg.Slurm.Conf, "ProctrackType=proctrack/linuxproc\n")
	n.now = n.now.Add(time.Minute)
	if got := says(); got != "" {
		t.Errorf("without cgroups: %s", got)
	}
}

func TestLostCardIsInTheInventory(t *testing.T) {
	n := newNode(t)
	n.reading.Node.GPUs = n.reading.Node.GPUs[:1]
	l, v := n.look(verdict.Prolog, "GPU-1")
	if len(l.Inventory.GPUs) != 2 || l.Inventory.GPUs[1].UUID != "GPU-1" || l.Inventory.GPUs[1].Index.IsSet() {
		t.Errorf("inventory %+v", l.Inventory)
	}
	if v.Reason != "LOST gpu=00000000:20:00.0 GPU-1" || !v.OwnLost {
		t.Errorf("reason %q, own %t", v.Reason, v.OwnLost)
	}
}

func TestSharing(t *testing.T) {
	n := newNode(t)
	opt := n.options(verdict.Prolog)
	opt.MaxAge = 5 * time.Second
	at := func(ago time.Duration, o Options) bool {
		n.now = n.now.Add(ago)
		l := read(context.Background(), n.cfg, o, n.ask)
		l.Wait()
		return l.Shared
	}
	real := func() { // reading.json's age is also that of the file
		t.Helper()
		if err := os.Chtimes(filepath.Join(n.cfg.Paths.Run, "reading.json"), n.now, n.now); err != nil {
			t.Fatal(err)
		}
	}
	if at(0, opt) {
		t.Error("nothing to share, and shared")
	}
	real()
	if !at(time.Second, opt) {
		t.Error("a second old, and not shared")
	}
	fresh := opt
	fresh.MaxAge = 0
	if at(0, fresh) {
		t.Error("shared although a fresh one was asked for")
	}
	real()
	if at(6*time.Second, opt) {
		t.Error("shared after 6 s")
	}
	real()
	n.boot("99999999-2222-3333-4444-555555555555")
	if at(0, opt) {
		t.Error("shared another boot's")
	}
	n.reading.Answer = gpu.AnswerCrash
	at(0, fresh)
	real()
	if at(0, opt) {
		t.Error("shared the answer of a probe that died")
	}
	low := opt
	low.Tier = 0
	n.reading.Answer = gpu.AnswerWhole
	at(0, func() Options { o := fresh; o.Tier = 0; return o }())
	real()
	if at(0, opt) {
		t.Error("shared tier 0 for tier 1")
	}
	real()
	if !at(0, low) {
		t.Error("tier 1 does not serve tier 0")
	}
}

// Eight prologs at one moment ask the probe once.
func TestSingleFlight(t *testing.T) {
	n := newNode(t)
	opt := n.options(verdict.Prolog)
	opt.MaxAge, opt.Now = 5*time.Second, time.Now
	var asked atomic.Int32
	slow := func(context.Context, driver.Request) driver.Reading {
		asked.Add(1)
		r := n.reading
		r.Node.Time = time.Now()
		time.Sleep(50 * time.Millisecond)
		return r
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if l := read(context.Background(), n.cfg, opt, slow); l.Reading.Answer != gpu.AnswerWhole {
				t.Errorf("answer %s", l.Reading.Answer)
			}
		})
	}
	wg.Wait()
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// A holder of the lock that hangs costs half of the deadline and no more.
func TestHungHolder(t *testing.T) {
	n := newNode(t)
	if err := os.MkdirAll(n.cfg.Paths.Run, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(n.cfg.Paths.Run, "reading.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	opt := n.options(verdict.Prolog)
	opt.MaxAge, opt.Deadline = 5*time.Second, 600*time.Millisecond
	start := time.Now()
	l := read(context.Background(), n.cfg, opt, n.ask)
	if took := time.Since(start); took > 550*time.Millisecond || l.Reading.Answer != gpu.AnswerWhole {
		t.Errorf("took %s, %s", took, l.Reading.Answer)
	}
	if len(l.Problems) != 1 || !strings.Contains(l.Problems[0].Error(), "reading.lock: held by another process") {
		t.Errorf("problems %v", l.Problems)
	}
}

func TestStateThatIsNotOurs(t *testing.T) {
	n := newNode(t)
	s := Store{Dir: n.cfg.Paths.Run}
	path := filepath.Join(s.Dir, "memory.json")
	for name, text := range map[string]string{
		"half-written": `{"schema":"gpuhooks.memory/1","boot`, "empty": "", "another version": `{"schema":"gpuhooks.memory/9"}`,
		"not JSON": "\x00\x00", "a list": "[]",
	} {
		n.write(path, text)
		if m, err := s.Load(boot); err == nil || m.BootID != boot || m.GPUs != nil {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	n.write(path, `{"schema":"gpuhooks.memory/1","boot_id":"another","node_seq":7}`)
	if m, err := s.Load(boot); err != nil || m.NodeSeq != 0 {
		t.Errorf("another boot's: %+v, %v", m, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(boot); err == nil {
		t.Error("read a directory")
	}
	// A look goes on whatever lies there.
	l := read(context.Background(), n.cfg, n.options(verdict.Prolog), n.ask)
	if v := l.Judge(nil, Jobs{}); v.Outcome.Worse(check.Warn) || len(l.Problems) == 0 {
		t.Errorf("%s, problems %v", v.Summary(), l.Problems)
	}
}

func TestUpdatesDoNotOverwriteOneAnother(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "run")}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := s.Update(boot, func(m *Memory) { m.Clean.Runs++ }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if m, err := s.Load(boot); err != nil || m.Clean.Runs != 10 {
		t.Errorf("%d of 10, %v", m.Clean.Runs, err)
	}
	st, err := os.Stat(filepath.Join(s.Dir, "memory.json"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if entries, _ := os.ReadDir(s.Dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestCached(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	if err := s.keep(boot, "abc", verdict.Verdict{Time: now, Tier: 1, Outcome: check.Pass}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		boot, digest string
		now          time.Time
		want         bool
	}{
		"good":               {boot, "abc", now.Add(time.Minute), true},
		"another boot":       {"x", "abc", now, false},
		"another policy":     {boot, "abd", now, false},
		"too old":            {boot, "abc", now.Add(time.Hour), false},
		"clock was set back": {boot, "abc", now.Add(-time.Hour), false},
		"no digest":          {boot, "", now, false},
	} {
		if _, ok := s.Cached(tt.boot, tt.digest, tt.now, 5*time.Minute); ok != tt.want {
			t.Errorf("%s: %t", name, ok)
		}
	}
	c := config.Default()
	d := Digest(c)
	if c.Mode = config.Enforce; Digest(c) == d {
		t.Error("another policy has the same digest")
	}
}
