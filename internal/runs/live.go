package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"gpuhooks/internal/node"
	"gpuhooks/internal/slurm"
)

// Live is what the hooks of one job must know of another that runs beside it.
type Live struct {
	SLUID      string // names its cgroup where Slurm has it
	Resolution slurm.Resolution
}

// LiveJobs returns the live runs of this boot, by job and restart count. A run
// that cannot be read is left out and reported in the error.
func (d Dir) LiveJobs(bootID string) (map[Name]Live, error) {
	list, err := d.List()
	if err != nil {
		return nil, err
	}
	out := map[Name]Live{}
	var errs []error
	for _, r := range list {
		if !r.Live() {
			continue
		}
		switch l, err := d.readLive(r.Name, bootID); {
		case err == nil:
			out[r.Name] = l
		case missing(err), errors.Is(err, ErrOtherBoot):
		default:
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

// readLive reads the head of job.json: the counters behind it are most of the
// file, and a node may have many live runs.
func (d Dir) readLive(n Name, bootID string) (Live, error) {
	path := filepath.Join(d.Path(n), "job.json")
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Live{}, err
	}
	defer f.Close()
	var head struct {
		schema, boot string
		job          struct{ SLUID string }
		resolution   slurm.Resolution
	}
	dec := json.NewDecoder(f)
	broken := func(err error) (Live, error) { return Live{}, fmt.Errorf("%s: %w: %w", path, ErrBroken, err) }
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return broken(errors.Join(err, errors.New("not an object")))
	}
	for seen := 0; seen < 4; {
		key, err := dec.Token()
		if err != nil {
			return broken(err)
		}
		seen++
		switch key {
		case "schema":
			err = dec.Decode(&head.schema)
		case "boot_id":
			err = dec.Decode(&head.boot)
		case "job":
			err = dec.Decode(&head.job)
		case "resolution":
			err = dec.Decode(&head.resolution)
		case json.Delim('}'):
			err = errors.New("no resolution")
		default:
			seen--
			var other json.RawMessage
			err = dec.Decode(&other)
		}
		if err != nil {
			return broken(err)
		}
	}
	if err := accept(path, head.schema, JobSchema); err != nil {
		return Live{}, err
	}
	return Live{head.job.SLUID, head.resolution}, sameBoot(path, head.boot, bootID)
}

// OnGPUs lists the jobs on each card, by its UUID.
func OnGPUs(live map[Name]Live) map[string][]string {
	out := map[string][]string{}
	for n, j := range live {
		id := strconv.FormatUint(uint64(n.Job), 10)
		for _, uuid := range Cards(j.Resolution) {
			if !slices.Contains(out[uuid], id) {
				out[uuid] = append(out[uuid], id)
			}
		}
	}
	return out
}

// NodeJobs is what a judgement of the node must know of the jobs on it.
func NodeJobs(live map[Name]Live) node.Jobs {
	jobs, shared := map[string]bool{}, map[string]bool{}
	for n, j := range live {
		jobs[strconv.FormatUint(uint64(n.Job), 10)] = true
		if j.SLUID != "" {
			jobs[j.SLUID] = true
		}
		if !j.Resolution.MayBeShared() {
			continue
		}
		for _, uuid := range Cards(j.Resolution) {
			shared[uuid] = true
		}
	}
	return node.Jobs{Live: slices.Sorted(maps.Keys(jobs)), SharedGPUs: slices.Sorted(maps.Keys(shared)), OnGPU: OnGPUs(live)}
}
