package xid

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/BurntSushi/toml"
)

//go:embed catalogue.toml
var catalogueTOML string

// Entry is what the catalogue says about one code.
type Entry struct {
	Code     int      `toml:"-"`
	Name     string   `toml:"name"`     // short, lower case, our words
	Category string   `toml:"category"` // memory, pcie, nvlink, firmware, app, legacy, …
	Action   Action   `toml:"action"`
	Severity Severity `toml:"severity"` // "" unless a site set it: then by action and category
}

// Catalogue knows the XIDs. The zero value knows none.
type Catalogue struct {
	xid   map[int]Entry
	sxid  map[int]Entry
	rules func() ([]linkRule, error) // of NVLink5, parsed at the first 144–150
}

// file is the form of catalogue.toml and of a site's xid.toml.
type file struct {
	XID  map[string]Entry `toml:"xid"`
	SXID map[string]Entry `toml:"sxid"`
}

// Load parses the embedded catalogue and lays a site's own over it (nil: none).
// It takes a millisecond or two, so call it when there is an event and not before. If
// the site's part is broken, the error says where and the embedded catalogue is
// returned with it.
func Load(site []byte) (Catalogue, error) {
	c := Catalogue{xid: map[int]Entry{}, sxid: map[int]Entry{}, rules: sync.OnceValues(loadLinkRules)}
	if err := c.overlay(catalogueTOML); err != nil {
		return c, fmt.Errorf("embedded XID catalogue: %w", err)
	}
	if len(site) == 0 {
		return c, nil
	}
	own := Catalogue{xid: maps.Clone(c.xid), sxid: maps.Clone(c.sxid), rules: c.rules}
	if err := own.overlay(string(site)); err != nil {
		return c, err
	}
	return own, nil
}

// Lookup returns what the catalogue says about an XID.
func (c Catalogue) Lookup(code int) (Entry, bool) {
	e, ok := c.xid[code]
	return e, ok
}

// Codes lists the XIDs that the catalogue knows, ascending.
func (c Catalogue) Codes() []int { return slices.Sorted(maps.Keys(c.xid)) }

// overlay changes the keys that the text gives and leaves the others.
func (c *Catalogue) overlay(text string) error {
	var f file
	md, err := toml.Decode(text, &f)
	if err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return errors.New(pe.ErrorWithPosition())
		}
		return err
	}
	if u := md.Undecoded(); len(u) > 0 {
		return fmt.Errorf("unknown key %q", u[0].String())
	}
	return errors.Join(overlayEntries(c.xid, f.XID, "xid"), overlayEntries(c.sxid, f.SXID, "sxid"))
}

func overlayEntries(dst map[int]Entry, src map[string]Entry, table string) error {
	for key, e := range src {
		code, err := strconv.Atoi(key)
		if err != nil || code < 1 || code > maxCode {
			return fmt.Errorf("[%s.%s]: the name of the table must be a number from 1 to %d", table, key, maxCode)
		}
		if e.Action != "" && !e.Action.known() {
			return fmt.Errorf("[%s.%s]: action %q is none of %v", table, key, e.Action, Actions())
		}
		if e.Severity != "" && e.Severity != Info && e.Severity != Warn && e.Severity != Fail {
			return fmt.Errorf("[%s.%s]: severity %q is none of info, warn, fail", table, key, e.Severity)
		}
		old := dst[code]
		old.Code = code
		if e.Name != "" {
			old.Name = e.Name
		}
		if e.Category != "" {
			old.Category = e.Category
		}
		if e.Action != "" {
			old.Action = e.Action
		}
		if e.Severity != "" {
			old.Severity = e.Severity
		}
		dst[code] = old
	}
	return nil
}
