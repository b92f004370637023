package cli

import (
	"encoding/json"
	"io"
)

// WriteJSON prints a result as indented JSON with a line end. It does not
// escape <, > and &, which are common in names and harmless outside HTML.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
