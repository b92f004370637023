package node

import (
	"maps"
	"slices"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/xid"
)

// MemorySchema is the format of memory.json.
const MemorySchema = "gpuhooks.memory/1"

// seenAgain is how long a process must have been there to be left over.
const seenAgain = 3 * time.Second

// Bounds on what is remembered.
const (
	maxStrays = 256
	maxGPUs   = 256
)

// Memory is what this node remembers from one hook to the next, for one boot.
type Memory struct {
	Schema     string          `json:"schema"`
	BootID     string          `json:"boot_id"`
	DriverLoad string          `json:"driver_load"`          // "" until the driver was seen
	GPUs       map[string]Good `json:"gpus,omitempty"`       // by UUID
	NodeSeq    uint64          `json:"node_seq"`             // kernel log: what concerns no single GPU is judged up to here
	LastSeq    uint64          `json:"last_seq"`             // kernel log: somebody has read up to here
	Rates      map[string]Rate `json:"rates,omitempty"`      // by GPU UUID, PCI address, "mlx5_0/1"
	Strays     []Stray         `json:"strays,omitempty"`     // processes without a live job
	Stuck      []check.Stuck   `json:"stuck,omitempty"`      // threads that wait inside the driver
	NoAnswer   time.Time       `json:"no_answer,omitzero"`   // when a probe first did not answer, with no answer since
	LastAnswer time.Time       `json:"last_answer,omitzero"` // of this driver load; zero: nobody has looked
	Clean      Streak          `json:"clean,omitzero"`       // of whole-node looks
	AppErrors  check.AppErrors `json:"app_errors,omitempty"` // by GPU: XIDs 13 and 31, one for each job
	Slurm      string          `json:"slurm,omitempty"`      // its version, once a health check has asked: decides the order of a detected device list
}

// Good is the last good look at a GPU. A GPU that was never found good has a
// zero Time, no counters, and is judged by everything the kernel log still holds.
type Good struct {
	Time     time.Time    `json:"time,omitzero"`
	Seq      uint64       `json:"seq"` // kernel log: judged up to here
	Counters gpu.Counters `json:"counters,omitempty"`
	Last     Seen         `json:"last,omitzero"`
}

// Seen is the last look at a GPU, good or not: by it a reset is noticed.
type Seen struct {
	Time     time.Time    `json:"time,omitzero"`
	Seq      uint64       `json:"seq"` // kernel log: read up to here
	Counters gpu.Counters `json:"counters,omitempty"`
}

// resettable are counters that begin anew when a GPU is reset.
var resettable = []gpu.Counter{
	gpu.EnergyMillijoules, gpu.ECCVolCorrDRAM, gpu.ECCVolCorrSRAM, gpu.ECCVolUncorrDRAM, gpu.ECCVolUncorrSRAM,
}

// compared are the counters that checks compare with the last good look.
var compared = []gpu.Counter{
	gpu.ECCVolUncorrDRAM, gpu.ECCVolUncorrSRAM, gpu.ECCAggUncorrDRAM, gpu.ECCAggUncorrSRAM,
}

// pick leaves the named counters.
func pick(c gpu.Counters, names []gpu.Counter) gpu.Counters {
	out := gpu.Counters{}
	for _, n := range names {
		if v, ok := c.Get(n); ok {
			out[n] = v
		}
	}
	return out
}

// resets notices the GPUs that were reset since they were last looked at: one of
// their counters went backwards. What the kernel log had said until that look is
// cured; what it has said since is still to be judged.
func (m *Memory) resets(n *gpu.Node) {
	for i := range n.GPUs {
		uuid := n.GPUs[i].UUID
		g, ok := m.GPUs[uuid]
		if !ok || !n.Time.After(g.Last.Time) { // a shared reading may be older than what was learnt since
			continue
		}
		for _, c := range resettable {
			now, ok := n.GPUs[i].Counters.Get(c)
			before, ok2 := g.Last.Counters.Get(c)
			if ok && ok2 && now < before {
				g.Seq = max(g.Seq, g.Last.Seq)
			}
		}
		m.GPUs[uuid] = g
	}
}

// see takes a look at a card. A lost card tells no counters; those that it told
// before stay.
func (s Seen) see(t time.Time, g *gpu.GPU, seq uint64) Seen {
	if !t.After(s.Time) {
		return s
	}
	now := pick(s.Counters, resettable)
	maps.Copy(now, pick(g.Counters, resettable))
	return Seen{Time: t, Seq: max(s.Seq, seq), Counters: now}
}

// Stray is the first sighting of a process without a live job.
type Stray struct {
	gpu.Process
	First time.Time `json:"first"`
}

// Streak counts looks in a row that found nothing to drain for.
type Streak struct {
	Runs  int       `json:"runs"`
	Since time.Time `json:"since"`
}

// after is the number of the kernel log record after which the next look must
// begin: the oldest that somebody still needs.
func (m *Memory) after() uint64 {
	after := m.NodeSeq
	for _, g := range m.GPUs {
		after = min(after, g.Seq)
	}
	return after
}

// reload forgets what a newly loaded driver has made void: counters have begun
// anew, and what was logged before concerned the driver that is gone.
func (m *Memory) reload(load string) {
	if load == "" || load == m.DriverLoad {
		return
	}
	if m.DriverLoad != "" {
		m.GPUs, m.Rates, m.NodeSeq = nil, nil, m.LastSeq
	}
	m.DriverLoad, m.LastAnswer = load, time.Time{}
}

// good is the memory of one GPU.
func (m *Memory) good(uuid string) Good {
	if g, ok := m.GPUs[uuid]; ok {
		return g
	}
	return Good{Seq: m.NodeSeq}
}

// events leaves the events that nobody has judged yet: those behind the last
// good look at their GPU.
func (m *Memory) events(all []xid.Event, n *gpu.Node) []xid.Event {
	var out []xid.Event
	for _, e := range all {
		judged := m.NodeSeq
		if uuid := owner(e, n); uuid != "" {
			judged = m.good(uuid).Seq
		}
		// A look that began with record 0 has judged none yet.
		if e.Last > judged || judged == 0 {
			out = append(out, e)
		}
	}
	return out
}

// owner is the UUID of the GPU that an event is about; "" when it is about none
// that is known.
func owner(e xid.Event, n *gpu.Node) string {
	if e.Kind == xid.KindSXID {
		return ""
	}
	if e.UUID != "" || e.PCI == "" {
		return e.UUID
	}
	for i := range n.GPUs {
		if n.GPUs[i].PCI == e.PCI {
			return n.GPUs[i].UUID
		}
	}
	for _, p := range n.Presence.Proc {
		if p.Address == e.PCI {
			return p.UUID
		}
	}
	return ""
}

// seen are the strays that were there long enough before now to be left over if
// they are still there.
func (m *Memory) seen(now time.Time) []gpu.Process {
	var out []gpu.Process
	for _, s := range m.Strays {
		if now.Sub(s.First) >= seenAgain {
			out = append(out, s.Process)
		}
	}
	return out
}

// sight replaces the strays on the GPUs that were looked at by those that are
// there now; who was there before keeps the time of his first sighting.
func (m *Memory) sight(now time.Time, strays []gpu.Process) {
	var out []Stray
	for _, p := range strays[:min(len(strays), maxStrays)] {
		s := Stray{Process: p, First: now}
		i := slices.IndexFunc(m.Strays, func(o Stray) bool { return o.PID == p.PID && o.Start == p.Start })
		if i >= 0 {
			s.First = m.Strays[i].First
		}
		out = append(out, s)
	}
	m.Strays = out
}
