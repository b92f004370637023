package xid

import (
	"errors"
	"io"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/host"
)

// Batch is what a kernel log held since the last Scan.
type Batch struct {
	Events  []Event           // collapsed
	LastSeq uint64            // give it to SeekAfter next time; 0 before any record
	Lost    uint64            // records overwritten unread, or events beyond all bounds: Events is incomplete
	Gaps    []host.Overrun    // where records were lost, the latest few
	Last    uint64            // time of the last record in microseconds since boot; 0 when none was read
	Probed  map[string]uint64 // NVSwitches that the driver took in: Parser.Probed
	Loaded  gpu.Opt[uint64]   // number of the record with which the driver was last loaded
}

// maxGaps bounds how many gaps of one Scan are told apart.
const maxGaps = 4

// Scan reads a log to its present end. Use the same Parser for the next Scan of
// the same log: messages of several records may lie across.
func Scan(log *host.KernelLog, p *Parser) (Batch, error) {
	log.Filter = Relevant
	var b Batch
	var c Collector
	for {
		r, err := log.Next()
		var over *host.Overrun
		switch {
		case err == nil:
			if e, ok := p.Add(r); ok {
				c.Add(e)
			}
			continue
		case errors.Is(err, io.EOF): // a sampler's every look ends here: no search by type first
			err = nil
		case errors.As(err, &over):
			b.Lost += over.Lost
			b.Gaps = append(b.Gaps[max(0, len(b.Gaps)-maxGaps+1):], *over)
			continue
		}
		b.Events = c.Events()
		b.Lost += uint64(c.Dropped())
		b.LastSeq, _ = log.LastSeq()
		b.Last = log.LastTime()
		b.Loaded, b.Probed = p.Loaded(), p.Probed()
		return b, err
	}
}
