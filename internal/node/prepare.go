package node

import (
	"encoding/json"

	"gpuhooks/internal/driver"
)

// Prepare lets package json learn the types of what a look reads and writes. That
// takes longer than to read and write them, so a hook does it beside what comes
// before the look. Without it a look is the same, only slower.
func Prepare() {
	for _, v := range []any{Memory{}, driver.Line{}, sharedReading{}} {
		// What cannot be written shows where it is to be.
		_, _ = json.Marshal(v)
	}
}
