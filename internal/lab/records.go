package lab

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gpuhooks/internal/record"
)

// Records reads every record of a job that the nodes have spooled, wherever
// below the spool or the fallback directory it lies.
func (l *Lab) Records(job int) ([]record.Record, error) {
	var all []record.Record
	for _, n := range l.Nodes {
		rs, err := readRecords(n.Spool(), n.Fallback())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		for _, r := range rs {
			if int(r.Job.ID) == job {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// Record is the one record of a job; none or several is an error.
func (l *Lab) Record(job int) (record.Record, error) {
	rs, err := l.Records(job)
	if err != nil {
		return record.Record{}, err
	}
	if len(rs) != 1 {
		return record.Record{}, fmt.Errorf("job %d has %d records, want 1", job, len(rs))
	}
	return rs[0], nil
}

// readRecords reads all files *.json below the directories that are records.
func readRecords(dirs ...string) ([]record.Record, error) {
	var all []record.Record
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
				return nil // a spool that is not there yet has no records
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var r record.Record
			if err := json.Unmarshal(b, &r); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if r.Schema == record.Schema {
				all = append(all, r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
