package sim

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// keyTable is the one description of all scenario keys; the library and the
// tool are compiled with it.
//
//go:embed KEYS.md
var keyTable string

// Key is one row of the table of scenario keys.
type Key struct {
	Name    string // "gpu.N.lost", "call.<function>"
	Type    string // text, switch, number, ratio, counter, size, watt, celsius, mhz, fault
	Default string // "" where the key is unset unless a scenario sets it
	Meaning string
}

// Keys returns the table of scenario keys.
func Keys() []Key {
	var keys []Key
	for line := range strings.Lines(keyTable) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		keys = append(keys, Key{strings.Trim(cells[1], "`"), cells[2], cells[3], cells[4]})
	}
	return keys
}

var placeholder = regexp.MustCompile(`<\w+>`)

// pattern is the key with * for what varies, as the C side writes it.
func (k Key) pattern() string {
	name := k.Name
	if rest, ok := strings.CutPrefix(name, "gpu.N."); ok {
		name = "gpu.*." + rest
	}
	return placeholder.ReplaceAllString(name, "*")
}

func keysForC() string {
	var b strings.Builder
	for _, k := range Keys() {
		fmt.Fprintf(&b, "KEY(%q, %q, %q)\n", k.pattern(), k.Type, k.Default)
	}
	return b.String()
}
