//go:build cgo

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"gpuhooks/internal/cli"
	"gpuhooks/internal/driver"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/nvml"
	"gpuhooks/internal/slurm"
)

// readOptions are the flags of `gpu-probe read`.
type readOptions struct {
	root, nvml, identity string
	after                uint64
	tier                 int
	gpus                 []string
	countersOnly         bool
	host                 bool
	dirs                 []string
	inventory            bool
	journal              string
}

func readFlags(args []string) (readOptions, error) {
	var o readOptions
	var uuids, dirs string
	f := newFlags("read")
	f.StringVar(&o.root, "root", "/", "")
	f.StringVar(&o.nvml, "nvml", "", "")
	f.StringVar(&o.identity, "identity", "", "")
	f.Uint64Var(&o.after, "after", 0, "")
	f.IntVar(&o.tier, "tier", 1, "")
	f.StringVar(&uuids, "gpus", "", "")
	f.BoolVar(&o.countersOnly, "counters-only", false, "")
	f.BoolVar(&o.host, "host", false, "")
	f.StringVar(&dirs, "dirs", "", "")
	f.BoolVar(&o.inventory, "inventory", false, "")
	f.StringVar(&o.journal, "journal", "", "")
	if err := parse(f, args); err != nil {
		return o, err
	}
	if o.tier < 0 || o.tier > 1 {
		return o, usageError{fmt.Errorf("--tier %d: must be 0 or 1", o.tier)}
	}
	o.gpus, o.dirs = list(uuids), list(dirs)
	return o, nil
}

// list splits a flag of several values.
func list(s string) []string {
	var out []string
	for _, v := range strings.Split(s, ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// read is one look at the node: tier 0 at once, then GPU by GPU as they answer.
func read(args []string, stdout *os.File, start time.Time) error {
	o, err := readFlags(args)
	if err != nil {
		return err
	}
	fs := host.NewFS(o.root)
	if o.inventory {
		return printInventory(fs, o, stdout)
	}
	debug.SetGCPercent(-1) // a look lives for milliseconds and fits in a few megabytes
	debug.SetMemoryLimit(64 << 20)
	out := &lines{to: stdout}
	go leaveWithReader(stdout)
	go out.guard("json", prepare)

	boot, err := fs.BootID()
	out.hello(driver.Hello{Protocol: driver.Protocol, Version: cli.Version(), PID: os.Getpid(), BootID: boot})
	if err != nil {
		out.fault(gpu.Fault{Call: "boot_id", Kind: gpu.FaultOther, Text: err.Error()})
	}
	// NVML's start is the slowest single step, so it runs beside tier 0. The GPUs
	// are read behind: where one crashes the library, tier 0 has been said.
	var presence gpu.Presence
	said, looked := make(chan bool), make(chan bool)
	if o.tier > 0 {
		go func() {
			defer close(looked)
			out.guard("nvml", func() {
				l := &look{fs: fs, o: o, out: out}
				o := l.open(boot)
				<-said
				l.proc = presence.Proc
				l.run(o)
			})
		}()
	} else {
		close(looked)
	}
	out.guard("presence", func() { presence = fs.Presence() })
	out.put(driver.Line{Presence: &presence})
	surrounded := make(chan bool)
	if o.host {
		go readHost(fs, o.dirs, presence, out, start, surrounded)
	} else {
		close(surrounded)
	}
	var kernel kernelRead
	out.guard("kernel log", func() {
		kernel = readKernel(fs, o.after, presence.Proc, start)
		out.put(driver.Line{Kernel: &kernel.Kernel})
	})
	close(said)
	asked := make(chan bool)
	out.guard("journal", func() { o.closeGaps(&kernel, fs, boot, presence.Proc, out, start, asked) })
	<-looked
	waitForHost(surrounded, start)
	waitForJournal(asked)
	out.put(driver.Line{Done: &driver.Done{Micros: time.Since(start).Microseconds()}})
	return nil
}

type opening struct {
	library *nvml.Library
	fault   *gpu.Fault
}

// look is tier 1 of one read.
type look struct {
	fs    host.FS
	o     readOptions
	out   *lines
	proc  []gpu.ProcGPU // the cards of /proc/driver/nvidia, which tier 0 reads
	known identities
}

// open opens NVML; what is known of the GPUs is read meanwhile.
func (l *look) open(bootID string) opening {
	opened := make(chan opening, 1)
	go l.out.guard("nvmlInit", func() {
		library, fault := nvml.Open(l.o.nvml)
		opened <- opening{library, fault}
	})
	l.known = loadIdentities(l.o.identity, bootID, l.fs.DriverLoad())
	return <-opened
}

// run reads the driver and all GPUs, in parallel, and returns them in NVML order.
func (l *look) run(o opening) (gpu.Driver, []gpu.GPU) {
	if o.fault != nil {
		l.out.fault(*o.fault)
		return gpu.Driver{}, nil
	}
	asked := time.Now()
	d, faults := o.library.Driver()
	slow := time.Since(asked) > time.Millisecond
	if !l.o.countersOnly {
		cc, more := o.library.ConfCompute()
		d.ConfCompute, faults = cc, append(faults, more...)
	}
	l.out.put(driver.Line{Driver: &d})
	for _, f := range faults {
		l.out.fault(f)
	}
	n := d.Count.Or(0)
	if slow {
		// A goroutine in a driver call holds a processor until the runtime notices;
		// with one each, no GPU waits for another.
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), n+1))
	}

	gpus := make([]gpu.GPU, n)
	var wg sync.WaitGroup
	for i := range n {
		if l.skip(i) {
			continue
		}
		wg.Go(func() {
			l.out.guard(fmt.Sprintf("gpu %d", i), func() { gpus[i] = l.one(o.library, i) })
		})
	}
	wg.Wait()
	gpus = slices.DeleteFunc(gpus, func(g gpu.GPU) bool { return !g.Complete })

	seen := make([]gpu.Identity, 0, n)
	for _, g := range gpus {
		if len(g.Faults) == 0 {
			seen = append(seen, g.Identity)
		}
	}
	if l.o.identity != "" && l.known.DriverLoad != "" && l.known.update(seen) {
		// A cache that cannot be written costs the next look some calls, no more.
		_ = l.known.save(l.o.identity)
	}
	return d, gpus
}

// one reads a GPU and writes its two lines.
func (l *look) one(lib *nvml.Library, index int) gpu.GPU {
	known := l.known.find(index)
	early := func(g gpu.GPU) { l.out.put(driver.Line{GPU: &g}) }
	if l.o.countersOnly {
		early = nil
	}
	g := lib.Read(index, known, nvml.Options{CountersOnly: l.o.countersOnly}, early)
	if g.UUID == "" {
		l.nameFromProc(&g)
	}
	nameProcesses(g.Processes)
	for i := range g.Instances {
		nameProcesses(g.Instances[i].Processes)
	}
	l.out.put(driver.Line{GPU: &g})
	return g
}

// skip says that the caller did not ask for the GPU at index. One whose
// identity is not known yet is read: the caller filters.
func (l *look) skip(index int) bool {
	known := l.known.find(index)
	if len(l.o.gpus) == 0 || known == nil {
		return false
	}
	for _, u := range l.o.gpus {
		// An instance does not tell its card's UUID, but in the oldest form.
		if u == known.UUID || strings.HasPrefix(u, "MIG-") && (!strings.HasPrefix(u, "MIG-GPU-") || strings.HasPrefix(u, "MIG-"+known.UUID)) {
			return false
		}
	}
	return true
}

// nameFromProc names a GPU that did not answer, by what the driver shows in
// /proc: NVML counts in the order of the PCI addresses.
func (l *look) nameFromProc(g *gpu.GPU) {
	proc := slices.Clone(l.proc)
	slices.SortFunc(proc, func(a, b gpu.ProcGPU) int { return cmp.Compare(a.Address, b.Address) })
	if g.Index < len(proc) {
		p := proc[g.Index]
		g.Minor, g.UUID, g.PCI, g.Name = p.Minor, p.UUID, p.Address, p.Model
	}
}

// nameProcesses adds what the kernel knows of the processes. One that is gone
// keeps its number only.
func nameProcesses(list []gpu.Process) {
	fs := host.NewFS("/") // processes are the machine's, also of a simulated node
	for i := range list {
		p, err := fs.Process(list[i].PID)
		if err != nil {
			continue
		}
		kind, memory := list[i].Type, list[i].Memory
		list[i] = p.GPUProcess()
		list[i].Type, list[i].Memory = kind, memory
	}
}

// printInventory prints the node as `gpu-prolog resolve --inventory` takes it.
func printInventory(fs host.FS, o readOptions, stdout *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	library, fault := nvml.Open(o.nvml)
	if fault != nil {
		return fault
	}
	boot, err := fs.BootID()
	if err != nil {
		return err
	}
	node := gpu.Node{BootID: boot, Presence: fs.Presence()}
	l := look{
		fs: fs, o: o, out: &lines{to: null}, proc: node.Presence.Proc,
		known: loadIdentities(o.identity, boot, node.Presence.DriverLoad),
	}
	node.Driver, node.GPUs = l.run(opening{library: library})
	caps, err := fs.MIGMinors()
	if err != nil {
		caps = nil // no capabilities below this root: instances keep their numbers only
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	short, _, _ := strings.Cut(name, ".")
	b, err := json.MarshalIndent(slurm.InventoryOf(&node, short, "", caps), "", " ")
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(b, '\n'))
	return err
}
