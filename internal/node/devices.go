package node

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"strings"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/host"
	"gpuhooks/internal/slurm"
	"gpuhooks/internal/slurmconf"
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

// holds says whether what was remembered for k counts now. What cannot be told
// just now contradicts nothing: the driver may be gone, which changes no place in
// the list.
func (k deviceKey) holds(now deviceKey) bool {
	same := func(a, b string) bool { return a == b || a == "" || b == "" }
	return k.BootID != "" && k.BootID == now.BootID && k.Slurmd == now.Slurmd && k.Gres == now.Gres &&
		same(k.NodeGres, now.NodeGres) && same(k.DriverLoad, now.DriverLoad)
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
	if d.whose && err == nil && file.holds(d.key) {
		d.have = file
	}
	return d
}

// RemembersDevices says whether the device list of the slurmd that is at work here
// is remembered. It asks neither the driver nor Slurm.
func RemembersDevices(cfg config.Config, node string, conf slurmconf.Conf, gres slurmconf.Gres) (bool, error) {
	boot, err := host.NewFS(cfg.Paths.Root).BootID()
	l := &Look{
		BootID: boot, Conf: conf, Gres: gres, cfg: cfg, opt: Options{NodeName: node}, store: Store{Dir: cfg.Paths.Run},
	}
	known := l.detect().known()
	return known, errors.Join(append(l.Problems, err)...)
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
	release, err := s.lock()
	if err != nil {
		return err
	}
	defer release()
	d, err := s.loadDevices()
	if err != nil || !d.holds(key) {
		d = Devices{Schema: DevicesSchema, deviceKey: key, Stuck: d.Stuck}
	}
	change(&d)
	return writeJSON(s.path("devices.json"), d)
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
