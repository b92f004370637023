package runs

import "time"

// Found says what an epilog finds of its run.
type Found string

// What an epilog may find.
const (
	FoundOpen    Found = "open"    // a run to close
	FoundDone    Found = "done"    // this epilog has run before
	FoundRefused Found = "refused" // the prolog refused the job: nothing to record
	FoundNone    Found = "none"    // no prolog ran here
)

// Choose finds the run that an epilog closes: its job's newest one here without
// `done` and with a restart count not above its own. After a requeue Slurm tells
// the epilog a count one higher than the prolog saw (facts: slurm.md §9).
func Choose(list []Run, own Name) (Run, Found) {
	var newest Run
	found := FoundNone
	for _, r := range list {
		if r.Job != own.Job || r.Restart > own.Restart || found != FoundNone && r.Restart < newest.Restart {
			continue
		}
		switch {
		case !r.Done.IsZero():
			// A closed run is this epilog's own only if no restart lies between.
			if r.Restart >= own.Restart-1 {
				newest, found = r, FoundDone
			}
		case !r.Refused.IsZero():
			newest, found = r, FoundRefused
		default:
			newest, found = r, FoundOpen
		}
	}
	return newest, found
}

// keepDone is how long a closed run stays: for a second epilog to find it.
const keepDone = 10 * time.Minute

// Knows says whether Slurm still knows a job; sure is false where it could not
// be asked.
type Knows func(job uint32) (known, sure bool)

// Sweep chooses the runs to delete: ten minutes after done, and those whose job
// Slurm does not know any more. Only the health check may ask Slurm (DESIGN §5).
// forgotten are the ones among them that were never closed: their record is
// still to be written.
func Sweep(list []Run, now time.Time, knows Knows) (remove, forgotten []Run) {
	for _, r := range list {
		if !r.Done.IsZero() {
			if now.Sub(r.Done) >= keepDone {
				remove = append(remove, r)
			}
			continue
		}
		// A prolog that runs now is younger than what Slurm may answer.
		if now.Sub(r.Changed) < keepDone {
			continue
		}
		known, sure := knows(r.Job)
		switch {
		case !sure || known:
		case r.Refused.IsZero():
			forgotten = append(forgotten, r)
			remove = append(remove, r)
		default:
			remove = append(remove, r)
		}
	}
	return remove, forgotten
}
