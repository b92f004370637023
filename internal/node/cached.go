package node

import (
	"fmt"
	"hash/fnv"
	"time"

	"gpuhooks/internal/config"
	"gpuhooks/internal/verdict"
)

// CachedSchema is the format of verdict.json.
const CachedSchema = "gpuhooks.cached-verdict/1"

// Cached is the last verdict on the whole node, for those who only want to know
// (NHC, monitoring) and need not disturb the driver for it.
type Cached struct {
	Schema  string          `json:"schema"`
	BootID  string          `json:"boot_id"`
	Config  string          `json:"config"` // digest of the configuration that it was judged by
	Verdict verdict.Verdict `json:"verdict"`
}

// Digest names a configuration: another one may judge otherwise.
func Digest(c config.Config) string {
	sum := fnv.New64a()        // notices a change; nobody gains by forging it
	fmt.Fprintf(sum, "%#v", c) // maps in order; JSON would first learn all types
	return fmt.Sprintf("%016x", sum.Sum64())
}

// keep keeps a verdict of tier 1: less is none on the driver.
func (s Store) keep(boot, digest string, v verdict.Verdict) error {
	if v.Tier < 1 {
		return nil
	}
	return writeJSON(s.path("verdict.json"), Cached{CachedSchema, boot, digest, v})
}

// Cached returns the last verdict on the whole node, if it is of this boot, by
// this configuration and not older than maxAge.
func (s Store) Cached(boot, digest string, now time.Time, maxAge time.Duration) (Cached, bool) {
	var c Cached
	if readJSON(s.path("verdict.json"), &c) != nil || c.Schema != CachedSchema || digest == "" {
		return Cached{}, false
	}
	age := now.Sub(c.Verdict.Time)
	return c, c.BootID == boot && c.Config == digest && age >= 0 && age <= maxAge
}
