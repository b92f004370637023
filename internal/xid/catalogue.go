package xid

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	Site     bool     `toml:"-"`        // the site has changed it
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
// It takes a millisecond or two, so call it when there is an event and not before.
// What is wrong with the site's part is said with its line: keys that are not
// known are left out; anything else leaves the embedded catalogue as it is.
func Load(site []byte) (Catalogue, error) {
	c := Catalogue{xid: map[int]Entry{}, sxid: map[int]Entry{}, rules: sync.OnceValues(loadLinkRules)}
	if unknown, err := c.overlay(catalogueTOML, false); unknown != nil || err != nil {
		return c, fmt.Errorf("embedded XID catalogue: %w", errors.Join(unknown, err))
	}
	if len(site) == 0 {
		return c, nil
	}
	own := Catalogue{xid: maps.Clone(c.xid), sxid: maps.Clone(c.sxid), rules: c.rules}
	unknown, err := own.overlay(string(site), true)
	if err != nil {
		return c, errors.Join(err, unknown)
	}
	return own, unknown
}

// Lookup returns what the catalogue says about an XID.
func (c Catalogue) Lookup(code int) (Entry, bool) {
	e, ok := c.xid[code]
	return e, ok
}

// Codes lists the XIDs that the catalogue knows, ascending.
func (c Catalogue) Codes() []int { return slices.Sorted(maps.Keys(c.xid)) }

// LookupSXID returns what the catalogue says about an NVSwitch's SXid. It knows
// few: the others are judged by the severity that their line states.
func (c Catalogue) LookupSXID(code int) (Entry, bool) {
	e, ok := c.sxid[code]
	return e, ok
}

// overlay changes the keys that the text gives and leaves the others.
func (c *Catalogue) overlay(text string, site bool) (unknown, err error) {
	var f file
	md, err := toml.Decode(text, &f)
	if err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return nil, errors.New(pe.ErrorWithPosition())
		}
		return nil, err
	}
	for _, key := range md.Undecoded() {
		unknown = errors.Join(unknown, fmt.Errorf("line %d: unknown key %q", lineOf(text, key), key.String()))
	}
	return unknown, errors.Join(overlayEntries(c.xid, f.XID, "xid", text, site), overlayEntries(c.sxid, f.SXID, "sxid", text, site))
}

func overlayEntries(dst map[int]Entry, src map[string]Entry, table, text string, site bool) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(src)) {
		e := src[key]
		bad := func(field, format string, args ...any) {
			at := lineOf(text, toml.Key{table, key, field})
			errs = append(errs, fmt.Errorf("line %d: [%s.%s]: %s", at, table, key, fmt.Sprintf(format, args...)))
		}
		code, err := strconv.Atoi(key)
		if err != nil || code < 1 || code > maxCode {
			bad("", "the name of the table must be a number from 1 to %d", maxCode)
		}
		if e.Action != "" && !e.Action.known() {
			bad("action", "action %q is none of %v", e.Action, Actions())
		}
		if e.Severity != "" && e.Severity != Info && e.Severity != Warn && e.Severity != Fail {
			bad("severity", "severity %q is none of info, warn, fail", e.Severity)
		}
		old := dst[code]
		old.Code, old.Site = code, site
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
	return errors.Join(errs...)
}

// lineOf finds the line on which a key stands, or its table if the key is written
// in some other way: the decoder does not tell. 1 when nothing fits.
func lineOf(text string, key toml.Key) int {
	table, field := strings.Join(key[:len(key)-1], "."), key[len(key)-1]
	found, inside, number := 1, false, 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ = strings.Cut(name, "]")
			name = strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(name)
			if name == key.String() {
				return number
			}
			if inside = name == table; inside {
				found = number
			}
			continue
		}
		name, _, ok := strings.Cut(line, "=")
		name = strings.Trim(name, " \t\"'")
		if ok && (inside && name == field || name == key.String()) {
			return number
		}
	}
	return found
}
