package lab

import (
	"errors"
	"fmt"

	"gpuhooks/internal/record"
	"gpuhooks/internal/spool"
)

// Records reads every record of a job that the nodes have spooled, or put into
// their fallback directory.
func (l *Lab) Records(job int) ([]record.Record, error) {
	var all []record.Record
	var errs []error
	for _, n := range l.Nodes {
		for _, dir := range []string{n.Spool(), n.Fallback()} {
			found, bad := spool.Find(dir, uint32(job))
			all = append(all, found...)
			for _, b := range bad {
				errs = append(errs, fmt.Errorf("%s: %w", b.Path, b.Err))
			}
		}
	}
	return all, errors.Join(errs...)
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
