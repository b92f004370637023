package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/slurmconf"
)

// List is Slurm's device list as it was when slurmd detected it. The numbers in
// SLURM_JOB_GPUS are places in it until slurmd starts anew, also when the driver
// shows fewer cards since then.
type List struct {
	Entries []Entry
	Source  string // where it comes from, for people: "slurmd -G of …"
}

// Entry is one device of a List.
type Entry struct {
	UUID    string       `json:"uuid,omitempty"` // of the card; "" when the driver did not show it
	Minor   gpu.Opt[int] `json:"minor"`          // /dev/nvidiaN
	PCI     string       `json:"pci,omitempty"`
	Name    string       `json:"name,omitempty"`
	MIG     *MIG         `json:"mig,omitempty"`
	Type    string       `json:"type,omitempty"`    // as Slurm prints it
	Files   string       `json:"files,omitempty"`   // as Slurm prints them
	Foreign bool         `json:"foreign,omitempty"` // not an NVIDIA device
}

// Computed makes the list that AutoDetect gives on this node now, from what the
// driver shows and Slurm's version. It is an error where the order is not
// certain, or where slurm.conf does not confirm the number of devices: a card
// that is gone by now would shift those behind it.
func Computed(inv Inventory, gres slurmconf.NodeGres, o Options) ([]Entry, error) {
	v := o.Slurm
	if !v.Known() {
		v, _ = slurmconf.ParseVersion(inv.Slurm)
	}
	o.Detected, o.Remembered = nil, nil
	if !gres.Detects() {
		return nil, errors.New("gres.conf has no AutoDetect for this node")
	}
	l := listOf(inv.nvidia(), gres, o, v)
	if l.why != "" {
		return nil, errors.New(l.why)
	}
	var out []Entry
	for _, t := range l.targets {
		out = append(out, entryOf(t))
	}
	return out, confirm(out, o)
}

// Printed makes a list of what slurmd -G printed, with the cards and instances
// that its device files are on this node now.
func Printed(inv Inventory, devices []slurmconf.Device, o Options) ([]Entry, error) {
	var out []Entry
	for i, t := range targetsOf(inv.nvidia(), devices) {
		e := entryOf(t)
		e.Type, e.Files = devices[i].Type, t.files
		out = append(out, e)
	}
	return out, confirm(out, o)
}

// confirm compares a list with the number in slurm.conf.
func confirm(list []Entry, o Options) error {
	n, known := configured(o.NodeGres)
	switch {
	case !known:
		return errors.New("slurm.conf does not tell how many GPUs this node has")
	case n != int64(len(list)):
		return fmt.Errorf("slurm.conf gives this node %d GPUs, and the list has %d", n, len(list))
	}
	return CheckEntries(list)
}

// CheckEntries says what makes a list useless: nothing in it, more than Slurm
// can have, or a device twice.
func CheckEntries(list []Entry) error {
	if len(list) == 0 || len(list) > maxNumbers {
		return fmt.Errorf("a device list of %d entries", len(list))
	}
	seen := map[string]bool{}
	for i, e := range list {
		key := e.key()
		if key == "" || seen[key] {
			return fmt.Errorf("entry %d of the device list is empty or there twice: %q", i, Clean(key, 80))
		}
		seen[key] = true
	}
	return nil
}

// key names the device among those of a node.
func (e Entry) key() string {
	k := strings.ToLower(e.UUID)
	if k == "" {
		k = e.Files
	}
	if n, ok := e.Minor.Get(); ok && k == "" {
		k = fmt.Sprintf("/dev/nvidia%d", n)
	}
	if e.MIG != nil && k != "" {
		k += fmt.Sprintf("/%d/%d", e.MIG.GI, e.MIG.CI)
	}
	return k
}

func entryOf(t target) Entry {
	e := Entry{Minor: t.minor, Files: t.files, Foreign: t.foreign}
	if t.gpu != nil {
		g := gpuOf(t.gpu, t.mig)
		e.UUID, e.Minor, e.PCI, e.Name, e.MIG = g.UUID, g.Minor, g.PCI, g.Name, g.MIG
	}
	return e
}

// targetsThen finds the devices of a remembered list among what the driver shows
// now. A card that is gone keeps its place.
func targetsThen(gpus []*InventoryGPU, list []Entry) []target {
	var out []target
	for i := range list {
		out = append(out, targetThen(gpus, &list[i]))
	}
	return out
}

func targetThen(gpus []*InventoryGPU, e *Entry) target {
	t := target{files: e.words(), minor: e.Minor, foreign: e.Foreign, was: e}
	if e.Foreign {
		return t
	}
	if e.UUID == "" && e.Files != "" { // not shown when it was remembered: only its files name it
		t := targetOf(gpus, slurmconf.Device{Files: strings.Split(e.Files, ",")})
		t.was = e
		return t
	}
	g := e.card(gpus)
	switch {
	case g == nil:
		return t
	case e.MIG == nil:
		t.gpu = g
		if len(g.MIG) > 0 {
			t.note = e.words() + " is the whole card, which was cut into MIG instances since slurmd started"
		}
	default:
		// An instance made anew has another identity, though its place is the same.
		i := slices.IndexFunc(g.MIG, func(m InventoryMIG) bool {
			return m.GI == e.MIG.GI && m.CI == e.MIG.CI && strings.EqualFold(m.UUID, e.MIG.UUID)
		})
		if i >= 0 {
			t.gpu, t.mig = g, &g.MIG[i]
		}
	}
	return t
}

// card is the entry's card if the driver shows it and nothing contradicts: the
// number of its device file, by which Slurm hands it out, must be the same.
func (e *Entry) card(gpus []*InventoryGPU) *InventoryGPU {
	i := slices.IndexFunc(gpus, func(g *InventoryGPU) bool {
		if e.UUID != "" {
			return strings.EqualFold(g.UUID, e.UUID)
		}
		return e.Minor.IsSet() && g.Minor == e.Minor
	})
	if i < 0 || e.Minor.IsSet() && gpus[i].Minor.IsSet() && gpus[i].Minor != e.Minor {
		return nil
	}
	return gpus[i]
}

// words name the entry's device for people.
func (e *Entry) words() string {
	var parts []string
	if e.UUID != "" {
		parts = append(parts, e.UUID)
	}
	if e.MIG != nil && e.MIG.UUID != "" {
		parts = append(parts, e.MIG.UUID)
	}
	switch n, ok := e.Minor.Get(); {
	case e.Files != "":
		parts = append(parts, e.Files)
	case ok:
		parts = append(parts, fmt.Sprintf("/dev/nvidia%d", n))
	}
	return strings.Join(parts, " ")
}

// gpu is what is remembered of a device that the driver does not show.
func (e *Entry) gpu() GPU {
	return GPU{Minor: e.Minor, UUID: e.UUID, PCI: e.PCI, Name: e.Name, MIG: e.MIG}
}
