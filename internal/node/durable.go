package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gpuhooks/internal/check"
)

// Durable is the directory of what outlives a reboot, /var/lib/gpuhooks: our
// drain and the faults of the cards. Both are written on the failure path only.
type Durable struct{ Dir string }

func (d Durable) path(name string) string { return filepath.Join(d.Dir, name) }

// DrainsSchema is the format of drained.json.
const DrainsSchema = "gpuhooks.drained/1"

// Drains is drained.json: what this node knows of its drain in Slurm.
type Drains struct {
	Schema    string   `json:"schema"`
	AskedBoot string   `json:"asked_boot,omitempty"` // the boot in which Slurm was last asked for a drain of ours that nobody remembers
	Drained   *Drained `json:"drained,omitempty"`    // until it is taken back
}

// Drained is a drain of ours.
type Drained struct {
	Reason    string      `json:"reason"` // as Slurm has it, "[HC] " included
	Code      string      `json:"code"`
	Class     check.Class `json:"class"` // "" when this version does not know the code
	Time      time.Time   `json:"time"`
	Confirmed time.Time   `json:"confirmed,omitzero"` // when Slurm last said that it stands
	Touched   bool        `json:"touched,omitempty"`  // somebody has changed the reason: it is his now
}

// Drains reads drained.json. Without one, or with a broken one or another
// version's, nothing is remembered, and the drain is recognised by its reason.
func (d Durable) Drains() (Drains, error) {
	fresh := Drains{Schema: DrainsSchema}
	var out Drains
	switch err := readJSON(d.path("drained.json"), &out); {
	case errors.Is(err, fs.ErrNotExist):
		return fresh, nil
	case err != nil:
		return fresh, err
	case out.Schema != DrainsSchema:
		return fresh, fmt.Errorf("%s: schema %q is not %s: starting afresh", d.path("drained.json"), out.Schema, DrainsSchema)
	}
	return out, nil
}

// KeepDrains replaces drained.json.
func (d Durable) KeepDrains(v Drains) error {
	v.Schema = DrainsSchema
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.keep("drained.json", append(b, '\n'))
}

// keep replaces a file and waits until the disk has it.
func (d Durable) keep(name string, b []byte) error {
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return err
	}
	return Replace(d.path(name), b, 0o600, true)
}
