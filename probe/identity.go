//go:build cgo

package main

import (
	"encoding/json"
	"io"
	"os"
	"slices"

	"gpuhooks/internal/gpu"
	"gpuhooks/internal/runs"
)

const identitySchema = "gpuhooks.identity/2"

// identities is the probe's cache of what does not change while the driver
// stays loaded. It saves nearly twenty calls a GPU, and names a GPU that does not
// answer any more.
type identities struct {
	Schema     string         `json:"schema"`
	BootID     string         `json:"boot_id"`
	DriverLoad string         `json:"driver_load"`
	GPUs       []gpu.Identity `json:"gpus"`
}

// loadIdentities reads the cache; anything but one of this boot and this
// driver load is as good as none.
func loadIdentities(path, bootID, driverLoad string) identities {
	fresh := identities{Schema: identitySchema, BootID: bootID, DriverLoad: driverLoad}
	if path == "" || bootID == "" || driverLoad == "" {
		return fresh
	}
	f, err := os.Open(path)
	if err != nil {
		return fresh
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	var c identities
	if err != nil || json.Unmarshal(b, &c) != nil ||
		c.Schema != identitySchema || c.BootID != bootID || c.DriverLoad != driverLoad {
		return fresh
	}
	return c
}

// find returns what is known of the GPU at index, or nil.
func (c *identities) find(index int) *gpu.Identity {
	for i := range c.GPUs {
		if c.GPUs[i].Index == index {
			return &c.GPUs[i]
		}
	}
	return nil
}

// update takes the identities of a look and says whether any of them is new. A
// GPU that is lost keeps its place.
func (c *identities) update(seen []gpu.Identity) bool {
	changed := false
	for _, id := range seen {
		if id.UUID == "" || id.PCI == "" {
			continue
		}
		old := c.find(id.Index)
		if old != nil && old.UUID == id.UUID {
			continue
		}
		changed = true
		if old != nil {
			*old = id
		} else {
			c.GPUs = append(c.GPUs, id)
		}
	}
	slices.SortFunc(c.GPUs, func(a, b gpu.Identity) int { return a.Index - b.Index })
	return changed
}

// save writes the cache. It is only a cache: where it cannot be written the
// next look asks again.
func (c *identities) save(path string) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return runs.WriteFile(path, append(b, '\n'))
}
