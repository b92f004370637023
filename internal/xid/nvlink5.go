package xid

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"
)

//go:embed nvlink5.toml
var nvlink5TOML string

// linkRule is one line of NVIDIA's decode table for XID 144–150.
type linkRule struct {
	xid    int
	units  []string
	info   [2]bitPattern // layouts before R575 and from R575
	status []uint32      // empty: any
	action Action
}

// bitPattern fits a word when the masked bits equal.
type bitPattern struct{ mask, want uint32 }

func (p bitPattern) fits(word uint32) bool { return word&p.mask == p.want }

// decode returns what the table says about an NVLink5 report. It needs no
// driver version: no IntrInfo of a unit fits one layout's rule for it and
// another layout's as well with a different result.
func (c Catalogue) decode(code int, r *LinkReport) (Action, bool) {
	if r == nil || !r.Words || c.rules == nil {
		return "", false
	}
	rules, err := c.rules()
	if err != nil {
		return "", false // a test proves that the embedded rules can be read
	}
	for _, rule := range rules {
		if rule.xid == code && slices.Contains(rule.units, r.Unit) &&
			(rule.info[0].fits(r.Info) || rule.info[1].fits(r.Info)) &&
			(len(rule.status) == 0 || slices.Contains(rule.status, r.Status)) {
			return rule.action, true
		}
	}
	return "", false
}

func loadLinkRules() ([]linkRule, error) {
	var f struct {
		Rule []struct {
			XID    int      `toml:"xid"`
			Units  []string `toml:"units"`
			Before string   `toml:"before_r575"`
			From   string   `toml:"from_r575"`
			Status []uint32 `toml:"status"`
			Action Action   `toml:"action"`
		} `toml:"rule"`
	}
	if _, err := toml.Decode(nvlink5TOML, &f); err != nil {
		return nil, err
	}
	rules := make([]linkRule, len(f.Rule))
	for i, r := range f.Rule {
		rules[i] = linkRule{xid: r.XID, units: r.Units, status: r.Status, action: r.Action}
		for k, bits := range []string{r.Before, r.From} {
			p, err := parseBits(bits)
			if err != nil {
				return nil, fmt.Errorf("rule %d: %w", i+1, err)
			}
			rules[i].info[k] = p
		}
		if !r.Action.known() {
			return nil, fmt.Errorf("rule %d: unknown action %q", i+1, r.Action)
		}
	}
	return rules, nil
}

// parseBits reads 32 characters of 0, 1 and "-" (any), most significant first.
func parseBits(s string) (bitPattern, error) {
	if len(s) != 32 {
		return bitPattern{}, fmt.Errorf("bit pattern %s has %d characters, not 32", strconv.Quote(s), len(s))
	}
	var p bitPattern
	for _, c := range s {
		p.mask <<= 1
		p.want <<= 1
		switch c {
		case '-':
		case '0':
			p.mask |= 1
		case '1':
			p.mask |= 1
			p.want |= 1
		default:
			return bitPattern{}, fmt.Errorf("bit pattern %s: %q is not 0, 1 or -", strconv.Quote(s), c)
		}
	}
	return p, nil
}
