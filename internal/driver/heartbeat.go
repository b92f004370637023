package driver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Heartbeat is <run>/sampler.json, which the sampler keeps up to date on its ticks,
// and for the first time before it opens the driver.
type Heartbeat struct {
	PID        int       `json:"pid"`
	StartTicks uint64    `json:"start_ticks"` // with PID the process, for this boot
	BootID     string    `json:"boot_id"`
	Time       time.Time `json:"time"` // UTC
	Runs       []string  `json:"runs"` // that it samples: "4711.0"
}

// The files of the sampler below the run directory.
const (
	SamplerLock      = "sampler.lock" // flock, held for as long as it lives
	SamplerHeartbeat = "sampler.json"
	SamplerLog       = "sampler.log"
	ReleaseRequest   = "release"        // asks it to close the driver within 2 s
	SamplerWanted    = "sampler.wanted" // asks systemd to start it: gpuhooks-sampler.path waits for this file
)

// ReadHeartbeat reads the sampler's heartbeat.
func ReadHeartbeat(run string) (Heartbeat, error) {
	var h Heartbeat
	path := filepath.Join(run, SamplerHeartbeat)
	b, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}
