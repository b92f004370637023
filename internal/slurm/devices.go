package slurm

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurmconf"
)

// target is one entry of Slurm's device list, as far as this node shows it.
type target struct {
	gpu     *InventoryGPU // nil when the driver does not show it
	mig     *InventoryMIG
	files   string       // as in gres.conf; "" for a detected one
	minor   gpu.Opt[int] // of the card, where only that is known
	foreign bool         // not an NVIDIA device
	note    string       // a warning for who gets this entry
	was     *Entry       // in a remembered list: what slurmd detected
}

// missing is what is known of a device that the driver does not show; ok is
// false where that is nothing.
func (t target) missing() (g GPU, ok bool) {
	if t.was != nil {
		return t.was.gpu(), !t.foreign
	}
	return GPU{Minor: t.minor}, t.minor.IsSet()
}

// devFile reads the name of a device file, in whatever directory it lies.
func devFile(file string) (kind string, number int) {
	base := path.Base(file)
	name := strings.TrimRight(base, "0123456789")
	n, err := strconv.Atoi(base[len(name):])
	if err != nil {
		return base, -1
	}
	return name, n
}

// targetOf finds the card or instance that a device of gres.conf means.
func targetOf(gpus []*InventoryGPU, d slurmconf.Device) target {
	t := target{files: strings.Join(d.Files, ",")}
	var caps []int
	for _, f := range d.Files {
		switch kind, n := devFile(f); {
		case kind == "nvidia" && n >= 0:
			t.minor = gpu.Some(n)
		case kind == "nvidia-cap" && n >= 0:
			caps = append(caps, n)
		default:
			t.foreign = true
		}
	}
	for _, g := range gpus {
		if t.minor.IsSet() && g.Minor != t.minor {
			continue
		}
		if len(caps) == 0 && t.minor.IsSet() {
			t.gpu = g
			if len(g.MIG) > 0 {
				t.note = fmt.Sprintf("%s is the whole card, which is cut into MIG instances", t.files)
			}
			return t
		}
		if m, note := byCaps(g, caps); m != nil {
			t.gpu, t.mig, t.note = g, m, note
			return t
		}
	}
	return t
}

// byCaps finds the instance of a card to which capability minors belong.
func byCaps(g *InventoryGPU, caps []int) (*InventoryMIG, string) {
	var ofGI []*InventoryMIG
	for i := range g.MIG {
		m := &g.MIG[i]
		gi, ci, exact := g.capMinors(m)
		note := ""
		if !exact {
			note = "capability devices are matched by the kernel's numbering, not by mig-minors"
		}
		if slices.Contains(caps, ci) {
			return m, note
		}
		if slices.Contains(caps, gi) {
			ofGI = append(ofGI, m)
		}
	}
	if len(ofGI) == 1 {
		return ofGI[0], "gres.conf names the GPU instance without its compute instance"
	}
	return nil, ""
}

// deviceList is Slurm's list, or why it cannot be told.
type deviceList struct {
	targets []target
	rule    Rule
	source  string // of a remembered list
	why     string // not empty: the list is not known
}

// listOf makes the list in which SLURM_JOB_GPUS counts.
func listOf(gpus []*InventoryGPU, node slurmconf.NodeGres, o Options, v slurmconf.Version) deviceList {
	if len(o.Detected) > 0 {
		return deviceList{targets: targetsOf(gpus, o.Detected), rule: BySlurmdG}
	}
	if !node.Detects() {
		l := deviceList{targets: targetsOf(gpus, node.Devices()), rule: ByGresConf}
		if len(l.targets) == 0 {
			l.why = "gres.conf has neither a gpu line with File= nor AutoDetect for this node"
		}
		return l
	}
	if o.Remembered != nil {
		return deviceList{targets: targetsThen(gpus, o.Remembered.Entries), rule: ByRemembered, source: o.Remembered.Source}
	}
	var l deviceList
	switch node.Auto {
	case "nvml":
		l = nvmlOrder(gpus, v)
	case "nvidia":
		l = minorOrder(gpus)
	case "full":
		l = fullOrder(gpus, v)
	default:
		return deviceList{
			targets: []target{{foreign: true, files: "AutoDetect=" + node.Auto}},
			why:     fmt.Sprintf("AutoDetect=%s finds no NVIDIA GPUs, so the job's GPUs are another vendor's", node.Auto),
		}
	}
	if l.why != "" {
		return l
	}
	if n, known := configured(o.NodeGres); known && n != int64(len(l.targets)) {
		l.why = fmt.Sprintf("slurm.conf gives this node %d GPUs and the driver shows %d now: which number is which only `slurmd -G` tells", n, len(l.targets))
	}
	return l
}

func targetsOf(gpus []*InventoryGPU, devices []slurmconf.Device) []target {
	var out []target
	for _, d := range devices {
		out = append(out, targetOf(gpus, d))
	}
	return out
}

// configured counts the gpu entries of the node's Gres.
func configured(items []slurmconf.GresItem) (n int64, known bool) {
	for _, g := range items {
		if g.Name == "gpu" {
			n += g.Count
		}
	}
	return n, n > 0
}

// nvmlOrder is AutoDetect=nvml: whole GPUs in NVML order, then, from 23.02.7,
// MIG instances in the order of their device files. Before, instances had
// invented links and stand between the GPUs.
func nvmlOrder(gpus []*InventoryGPU, v slurmconf.Version) deviceList {
	l := deviceList{rule: ByNVMLOrder}
	if hasMIG(gpus) {
		switch {
		case !v.Known():
			l.why = "the order of GPUs and MIG instances depends on Slurm's version, which is not known; `slurmd -G` tells it"
			return l
		case !v.AtLeast(23, 2, 7):
			l.why = fmt.Sprintf("Slurm %v mixes MIG instances and GPUs in an order that only `slurmd -G` tells", v)
			return l
		}
	}
	byIndex := slices.Clone(gpus)
	sort.SliceStable(byIndex, func(i, j int) bool {
		return byIndex[i].Index.Or(maxNumbers) < byIndex[j].Index.Or(maxNumbers)
	})
	for _, g := range byIndex {
		if !g.Index.IsSet() {
			l.why = "a card of this node has no NVML index"
			return l
		}
		if len(g.MIG) == 0 {
			l.targets = append(l.targets, target{gpu: g})
		}
	}
	byMinor, ok := sortedByMinor(byIndex)
	for _, g := range byMinor {
		if len(g.MIG) > 0 && !ok {
			l.why = "the minor number of a card with MIG instances is not known"
			return l
		}
		l.targets = append(l.targets, instances(g)...)
	}
	return l
}

// instances lists a card's MIG instances in the natural order of their files.
func instances(g *InventoryGPU) []target {
	var out []target
	for i := range g.MIG {
		out = append(out, target{gpu: g, mig: &g.MIG[i]})
	}
	sort.SliceStable(out, func(i, j int) bool {
		gi1, ci1, _ := g.capMinors(out[i].mig)
		gi2, ci2, _ := g.capMinors(out[j].mig)
		return gi1 < gi2 || gi1 == gi2 && ci1 < ci2
	})
	return out
}

// minorOrder is AutoDetect=nvidia: every card in the order of /dev/nvidiaN; MIG
// is not seen.
func minorOrder(gpus []*InventoryGPU) deviceList {
	l := deviceList{rule: ByMinorOrder}
	sorted, ok := sortedByMinor(gpus)
	if !ok {
		l.why = "AutoDetect=nvidia counts by /dev/nvidiaN, and the minor number of a card is not known"
		return l
	}
	for _, g := range sorted {
		t := target{gpu: g}
		if len(g.MIG) > 0 {
			t.note = "AutoDetect=nvidia does not see the MIG instances of this card"
		}
		l.targets = append(l.targets, t)
	}
	return l
}

// fullOrder is AutoDetect=full (26.05): Slurm takes what it was built with, so
// the list is known only where both ways give the same.
func fullOrder(gpus []*InventoryGPU, v slurmconf.Version) deviceList {
	a, b := nvmlOrder(gpus, v), minorOrder(gpus)
	switch {
	case a.why != "":
		return a
	case b.why != "":
		return b
	case !slices.EqualFunc(a.targets, b.targets, func(x, y target) bool { return x.gpu == y.gpu && x.mig == y.mig }):
		a.why = "AutoDetect=full counts in NVML order or by /dev/nvidiaN, which differ on this node; `slurmd -G` tells which"
	default:
		a.rule = ByAnyOrder
	}
	return a
}

func sortedByMinor(gpus []*InventoryGPU) (sorted []*InventoryGPU, ok bool) {
	sorted = slices.Clone(gpus)
	sort.SliceStable(sorted, func(i, j int) bool {
		return sorted[i].Minor.Or(maxNumbers) < sorted[j].Minor.Or(maxNumbers)
	})
	return sorted, !slices.ContainsFunc(gpus, func(g *InventoryGPU) bool { return !g.Minor.IsSet() })
}
