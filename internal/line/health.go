package line

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gpuhooks/internal/check"
	"gpuhooks/internal/gpu"
	"gpuhooks/internal/verdict"
)

// Health encodes one look at a node: a line about the node, one per GPU, and one
// per check.
func Health(cluster, node string, n gpu.Node, v verdict.Verdict, now time.Time) ([]byte, error) {
	e := newEncoder()
	where := []tag{{"cluster", cluster}, {"node", node}}
	e.start(HealthMeasurement, where...)
	e.text("outcome", string(v.Outcome))
	e.text("action", string(v.Action))
	e.text("answer", string(v.Answer))
	e.text("reason", v.Reason)
	e.integer("gpus", int64(len(n.GPUs)))
	e.findings(v.Findings)
	e.EndLine(now)
	for _, g := range n.GPUs {
		e.start(HealthMeasurement, append([]tag{{"gpu", strconv.Itoa(g.Index)}, {"uuid", g.UUID}, {"model", g.Name}}, where...)...)
		e.gpu(g, v.Findings)
		e.EndLine(now)
	}
	for _, c := range v.Checks {
		e.start(HealthMeasurement, append([]tag{{"check", c.Check}}, where...)...)
		e.text("outcome", string(c.Outcome))
		if r, ok := verdict.Number(c.Outcome); ok {
			e.integer("result", int64(r))
			e.nanos("seconds", c.Seconds)
		}
		e.EndLine(now)
	}
	if err := e.Err(); err != nil {
		return nil, fmt.Errorf("line protocol of node %s: %w", node, err)
	}
	return e.Bytes(), nil
}

func (e *encoder) gpu(g gpu.GPU, all []verdict.Finding) {
	var own []verdict.Finding
	for _, f := range all {
		if f.GPU != nil && f.GPU.UUID == g.UUID {
			own = append(own, f)
		}
	}
	e.findings(own)
	if v, ok := g.Health.RecoveryAction.Get(); ok {
		e.integer("recovery_action", int64(v))
	}
	for _, m := range []gpu.Metric{gpu.Temperature, gpu.Power, gpu.Utilization} {
		if v, ok := g.Readings[m]; ok {
			e.float(string(m), v)
		}
	}
}

// findings says how many checks failed, warned or could not look, and the codes
// of those that failed.
func (e *encoder) findings(all []verdict.Finding) {
	counts, codes := map[check.Outcome]int64{}, []string{}
	for _, f := range all {
		counts[f.Outcome]++
		if f.Outcome == check.Fail {
			codes = append(codes, f.Code)
		}
	}
	e.integer("failed", counts[check.Fail])
	e.integer("warned", counts[check.Warn])
	e.integer("errors", counts[check.Error])
	e.text("codes", strings.Join(codes, ","))
}
