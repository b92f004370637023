package runs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// CheckpointSchema is the format of a checkpoint.
const CheckpointSchema = "gpuhooks.checkpoint/1"

// Checkpoint is <spool>/checkpoints/<job>.<restart>.json: a run as the sampler
// knew it a minute ago at most, on a disk that survives the node.
type Checkpoint struct {
	Schema string `json:"schema"`
	Job    Job    `json:"job"`
	Sums   Sums   `json:"sums"`
}

// Checkpoints is the directory of them.
type Checkpoints string

// CheckpointsIn is the directory below a spool.
func CheckpointsIn(spool string) Checkpoints { return Checkpoints(filepath.Join(spool, "checkpoints")) }

// Path is the file of a run.
func (c Checkpoints) Path(n Name) string { return filepath.Join(string(c), n.String()+".json") }

// Encode makes the content of a run's file.
func (c Checkpoint) Encode() ([]byte, error) {
	c.Schema = CheckpointSchema
	b, err := json.Marshal(c)
	return append(b, '\n'), err
}

// Read reads a run's checkpoint.
func (c Checkpoints) Read(n Name) (Checkpoint, error) {
	var cp Checkpoint
	if err := readJSON(c.Path(n), &cp); err != nil {
		return cp, err
	}
	return cp, accept(c.Path(n), cp.Schema, CheckpointSchema)
}

// List names the runs that have one.
func (c Checkpoints) List() ([]Name, error) {
	entries, err := os.ReadDir(string(c))
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var out []Name
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".json")
		if n, isName := ParseName(base); ok && isName {
			out = append(out, n)
		}
	}
	return out, nil
}

// Remove deletes a run's checkpoint, if it has one.
func (c Checkpoints) Remove(n Name) error {
	if err := os.Remove(c.Path(n)); err != nil && !missing(err) {
		return err
	}
	return nil
}
