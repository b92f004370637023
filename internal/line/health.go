package line

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
)

// Health encodes one look at a node: one line per GPU, with how many checks
// failed, warned or could not look.
func Health(cluster, node string, n gpu.Node, findings []check.Finding, now time.Time) ([]byte, error) {
	e := newEncoder()
	for _, g := range n.GPUs {
		e.start(HealthMeasurement, tag{"cluster", cluster}, tag{"node", node},
			tag{"gpu", strconv.Itoa(g.Index)}, tag{"uuid", g.UUID}, tag{"model", g.Name})
		counts, codes := map[check.Outcome]int64{}, []string{}
		for _, f := range findings {
			if f.GPU == nil || f.GPU.UUID != g.UUID {
				continue
			}
			counts[f.Outcome]++
			if f.Outcome == check.Fail {
				codes = append(codes, f.Code)
			}
		}
		e.integer("failed", counts[check.Fail])
		e.integer("warned", counts[check.Warn])
		e.integer("errors", counts[check.Error])
		e.text("codes", strings.Join(codes, ","))
		if v, ok := g.Health.RecoveryAction.Get(); ok {
			e.integer("recovery_action", int64(v))
		}
		for _, m := range []gpu.Metric{gpu.Temperature, gpu.Power, gpu.Utilization} {
			if v, ok := g.Readings[m]; ok {
				e.float(string(m), v)
			}
		}
		e.EndLine(now)
	}
	if err := e.Err(); err != nil {
		return nil, fmt.Errorf("line protocol of node %s: %w", node, err)
	}
	return e.Bytes(), nil
}
