//go:build cgo

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"gpuhooks/internal/runs"
)

// marks are <run>/kernel.json: when the records were written behind which looks
// have gone on. With it a gap behind such a record has a beginning for the journal.
type marks struct {
	BootID string `json:"boot_id"`
	Marks  []mark `json:"marks"`
}

type mark struct {
	Seq  uint64 `json:"seq"`
	Usec uint64 `json:"usec"`
}

const (
	marksName = "kernel.json"
	maxMarks  = 64
)

// marksFile stands beside the identity cache; "" without one.
func marksFile(identity string) string {
	if identity == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(identity), marksName)
}

// loadMarks reads the file; one that is missing, broken or another boot's is empty.
func loadMarks(path, bootID string) marks {
	var m marks
	if b, err := os.ReadFile(path); err != nil || json.Unmarshal(b, &m) != nil || m.BootID != bootID || bootID == "" {
		return marks{BootID: bootID}
	}
	return m
}

// time is when the record was written, in microseconds since boot; 0: not known.
func (m marks) time(seq uint64) uint64 {
	for _, k := range m.Marks {
		if k.Seq == seq {
			return k.Usec
		}
	}
	return 0
}

// save adds the last record of a look, unless it is there. The one that the look
// went on from stays: looks go on from it as long as a card is not well.
func (m marks) save(path string, seq, usec, after uint64) error {
	if path == "" || m.BootID == "" || usec == 0 || m.time(seq) != 0 {
		return nil
	}
	if len(m.Marks) >= maxMarks {
		oldest := 0
		if m.Marks[0].Seq == after {
			oldest = 1
		}
		m.Marks = slices.Delete(m.Marks, oldest, oldest+1)
	}
	m.Marks = append(m.Marks, mark{seq, usec})
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return runs.WriteFile(path, b)
}
