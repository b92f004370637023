package node

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"strings"
	"time"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
	"gpuhooks/internal/slurmctl"
)

// DevicesSchema is the format of devices.json.
const DevicesSchema = "gpuhooks.devices/1"

// The sources of a remembered list.
const (
	FromSlurmdG  = "slurmd -G"
	FromComputed = "computed"
)

// Devices is Slurm's detected device list as it is remembered for one start of
// slurmd. It is kept apart from the memory, which every hook rewrites.
type Devices struct {
	Schema string `json:"schema"`
	deviceKey
	Started time.Time     `json:"slurmd_started,omitzero"`
	Source  string        `json:"source,omitempty"` // FromSlurmdG, FromComputed; "" without a list
	Made    time.Time     `json:"made,omitzero"`
	List    []slurm.Entry `json:"list,omitempty"`
	Asked   time.Time     `json:"asked,omitzero"`      // when slurmd -G was last asked, for this key
	Stuck   int           `json:"stuck_pid,omitempty"` // a slurmd -G that would not die
}

// deviceKey is what a list holds for: anything else voids it.
type deviceKey struct {
	BootID     string `json:"boot_id"`
	Slurmd     Slurmd `json:"slurmd"`
	Gres       string `json:"gres"`      // digest of this node's lines in gres.conf
	NodeGres   string `json:"node_gres"` // digest of its Gres= in slurm.conf; "" when that could not be read
	DriverLoad string `json:"driver_load"`
}

// other says in what two keys differ; "" when they are the same. What cannot be
// told just now contradicts nothing: the driver may be gone, which changes no
// place in the list.
func (k deviceKey) other(now deviceKey) string {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	switch {
	case k.BootID != now.BootID || k.BootID == "":
		return "another boot"
	case k.Slurmd != now.Slurmd:
		return "another start of slurmd"
	case k.Gres != now.Gres:
		return "another gres.conf"
	case differ(k.NodeGres, now.NodeGres):
		return "another Gres= in slurm.conf"
	case differ(k.DriverLoad, now.DriverLoad):
		return "another load of the driver"
	}
	return ""
}

// describe is the source in words, for `gpu-prolog resolve`.
func (d Devices) describe() string {
	started := "a start that is not known"
	if !d.Started.IsZero() {
		started = d.Started.Format(time.RFC3339)
	}
	return fmt.Sprintf("the list of the slurmd that started at %s (%s at %s)", started, d.Source, d.Made.Format(time.RFC3339))
}

// detected is what a look knows of the detected list; its zero value is for a
// node without AutoDetect.
type detected struct {
	on    bool // AutoDetect is on
	key   deviceKey
	whose bool    // which slurmd is at work is known
	have  Devices // of this very key; without a list when there is none
}

func (d detected) known() bool { return len(d.have.List) > 0 }

// detect reads the remembered list, once a look and only where AutoDetect is on.
func (l *Look) detect() *detected {
	if l.detected != nil {
		return l.detected
	}
	l.detected = &detected{}
	gres := l.Gres.ForNode(l.opt.NodeName)
	if !gres.Detects() {
		return l.detected
	}
	d := l.detected
	d.on = true
	d.key = deviceKey{BootID: l.BootID, Gres: digestOf(gres), NodeGres: l.nodeGresDigest(), DriverLoad: l.Memory.DriverLoad}
	file, err := l.store.loadDevices()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.problem("the remembered device list", err)
	}
	proc := cmp.Or(l.opt.proc, host.NewFS("/"))
	d.key.Slurmd, d.whose = findSlurmd(proc, cmp.Or(l.opt.parent, os.Getppid()), file.Slurmd, pidFile(l.Conf, l.opt.NodeName))
	if d.whose && err == nil && file.other(d.key) == "" {
		d.have = file
	}
	return d
}

// loadDevices reads devices.json.
func (s Store) loadDevices() (Devices, error) {
	var d Devices
	path := s.path("devices.json")
	if err := readJSON(path, &d); err != nil {
		return Devices{}, err
	}
	switch {
	case d.Schema != DevicesSchema:
		return Devices{}, fmt.Errorf("%s: schema %q is not %s", path, slurm.Clean(d.Schema, 40), DevicesSchema)
	case len(d.List) > 0:
		if err := slurm.CheckEntries(d.List); err != nil {
			return Devices{}, fmt.Errorf("%s: %w: %w", path, errBroken, err)
		}
	}
	return d, nil
}

// keepDevices changes what is remembered for the key, under the lock. What is
// there for another key is forgotten, but for a slurmd -G that hangs.
func (s Store) keepDevices(key deviceKey, change func(*Devices)) error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	release, err := lock(s.path("memory.lock"), lockWait, nil)
	if err != nil {
		return err
	}
	defer release()
	d, err := s.loadDevices()
	if err != nil || d.other(key) != "" {
		d = Devices{Schema: DevicesSchema, deviceKey: key, Stuck: d.Stuck}
	}
	change(&d)
	return writeJSON(s.path("devices.json"), d)
}

// rememberDevices remembers the list that this look gives, where none is yet:
// whoever comes first after slurmd's start does so, before a card can get lost.
func (l *Look) rememberDevices() {
	d := l.detect()
	if !d.on || d.known() || !l.fitToRemember(d) {
		return
	}
	list, err := slurm.Computed(l.Inventory, l.Gres.ForNode(l.opt.NodeName), l.SlurmOptions())
	if err != nil {
		return // `gpu-prolog resolve` says why
	}
	l.problem("remembering the device list", l.store.keepDevices(d.key, func(now *Devices) {
		if len(now.List) == 0 {
			l.put(now, FromComputed, list)
		}
		d.have = *now
	}))
}

// fitToRemember: a whole answer, of a process that sees the whole node, and a
// slurmd whose list it is.
func (l *Look) fitToRemember(d *detected) bool {
	return d.whose && d.key.BootID != "" && d.key.DriverLoad != "" && d.key.NodeGres != "" &&
		l.Reading.Answer == gpu.AnswerWhole && !l.opt.JobCgroup
}

func (l *Look) put(d *Devices, source string, list []slurm.Entry) {
	now := l.opt.Now().UTC().Truncate(time.Second)
	d.Source, d.List, d.Made, d.Started = source, list, now, d.Slurmd.started(now)
}

// Asking slurmd -G again after a failure, and the time that a look may have
// taken for there to be time for it.
const (
	askAgain = time.Hour
	quick    = 5 * time.Second
)

// AskSlurmd has slurmd -G tell the list, once for each key; only the health check
// has the time. It does nothing where the list is known from it, where there is no
// AutoDetect, or where the driver did not just answer.
func (l *Look) AskSlurmd(ctx context.Context, c slurmctl.Client) error {
	d := l.detect()
	now := l.opt.Now().UTC().Truncate(time.Second)
	if c.Slurmd == "" || !d.on || d.have.Source == FromSlurmdG || !l.fitToRemember(d) || l.Reading.Elapsed > quick {
		return nil
	}
	mine := false
	err := l.store.keepDevices(d.key, func(f *Devices) {
		age := now.Sub(f.Asked)
		hangs := f.Stuck > 0 && l.isSlurmdG(f.Stuck)
		if f.Source == FromSlurmdG || hangs || age >= 0 && age < askAgain {
			return
		}
		mine = true
		f.Asked, f.Stuck = now, 0
	})
	if err != nil || !mine {
		return err
	}
	conf, _ := slurmconf.Locate(cmp.Or(l.opt.SlurmConf, l.cfg.Slurm.Conf))
	devices, err := c.SlurmdG(ctx, conf, l.opt.NodeName, l.store.path("slurmd-G"))
	if stuck := (*slurmctl.StuckError)(nil); errors.As(err, &stuck) {
		return errors.Join(err, l.store.keepDevices(d.key, func(f *Devices) { f.Stuck = stuck.PID }))
	}
	if err != nil {
		return err
	}
	list, err := slurm.Printed(l.Inventory, devices, l.SlurmOptions())
	if err != nil {
		return fmt.Errorf("slurmd -G: %w", err)
	}
	return l.store.keepDevices(d.key, func(f *Devices) {
		l.put(f, FromSlurmdG, list)
		d.have = *f
	})
}

// isSlurmdG says whether that process may still be the one that was left behind.
func (l *Look) isSlurmdG(pid int) bool {
	p, err := cmp.Or(l.opt.proc, host.NewFS("/")).ProcessStat(pid)
	return err == nil && p.State == 'D'
}

// digestOf names what gres.conf says of a node, whatever it says of others.
func digestOf(g slurmconf.NodeGres) string {
	sum := fnv.New128a() // notices a change; nobody gains by forging it
	fmt.Fprintln(sum, g.Auto)
	for _, line := range g.Lines {
		for _, p := range line.Line.Pairs {
			if !strings.EqualFold(p.Key, "NodeName") {
				fmt.Fprintf(sum, "%q=%q ", strings.ToLower(p.Key), p.Value)
			}
		}
		fmt.Fprintln(sum)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// nodeGresDigest names the node's Gres= in slurm.conf; "" when it is not known.
func (l *Look) nodeGresDigest() string {
	line, ok := l.Conf.Node(l.opt.NodeName)
	if !ok || l.ConfErr != nil {
		return ""
	}
	sum := fnv.New128a()
	fmt.Fprintf(sum, "%+v", line.Gres())
	return hex.EncodeToString(sum.Sum(nil))
}
