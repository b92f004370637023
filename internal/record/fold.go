package record

import (
	"strings"

	"gpuhooks/internal/gpu"
)

// Folded is one field over several GPUs.
type Folded struct {
	Value gpu.Opt[float64]
	Known int // GPUs whose value is known
	Of    int // all of them
}

// FoldGPUs makes one value of a field over the GPUs of one or several records.
// GPUs whose value is unknown are left out and counted: they are never taken
// for zero.
func FoldGPUs(records []Record, field string) Folded {
	fold, _ := foldOf(field)
	var out Folded
	var sum, weights float64
	for _, r := range records {
		weight := max(r.Elapsed.Or(1), 1e-3)
		for _, g := range r.GPUs {
			out.Of++
			v, ok := g.Get(field)
			if !ok {
				continue
			}
			out.Known++
			best, any := out.Value.Get()
			switch fold {
			case Sum:
				out.Value = gpu.Some(best + v)
			case Average:
				sum += v * weight
				weights += weight
				out.Value = gpu.Some(sum / weights)
			case Largest:
				if !any || v > best {
					out.Value = gpu.Some(v)
				}
			case Least:
				if !any || v < best {
					out.Value = gpu.Some(v)
				}
			}
		}
	}
	return out
}

func foldOf(field string) (Fold, bool) {
	for _, q := range quantities {
		if !strings.HasPrefix(field, q.Name) { // else a hundred names are put together
			continue
		}
		for _, s := range q.Stats {
			if q.name(s) == field {
				return Field{Quantity: q, Stat: s}.FoldOver(), true
			}
		}
	}
	return "", false
}
