// Package gpu is plain data about GPUs: what a node has, what it reads, and the
// differences between two readings. It does no I/O and imports nothing of ours.
//
// What a driver does not support is an unset Opt or a missing map key, never 0.
// What could not be read is a Fault on the GPU that it concerns.
package gpu

import (
	"bytes"
	"encoding/json"
)

// Opt is a value that may be unknown. The zero Opt is unset. In JSON an unset
// Opt is null, or absent where the field has `omitzero`.
type Opt[T any] struct {
	value T
	set   bool
}

// Some returns a set Opt.
func Some[T any](v T) Opt[T] { return Opt[T]{value: v, set: true} }

// Get returns the value and whether it is known.
func (o Opt[T]) Get() (T, bool) { return o.value, o.set }

// IsSet says whether the value is known.
func (o Opt[T]) IsSet() bool { return o.set }

// IsZero says that the value is unknown; encoding/json's omitzero asks it.
func (o Opt[T]) IsZero() bool { return !o.set }

// Or returns the value, or def where it is unknown. Use it only for display:
// a decision must look at Get's second result.
func (o Opt[T]) Or(def T) T {
	if !o.set {
		return def
	}
	return o.value
}

// MarshalJSON writes the value, or null where it is unknown.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.set {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON reads a value; null leaves the Opt unset.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	*o = Opt[T]{}
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(b, &o.value); err != nil {
		return err
	}
	o.set = true
	return nil
}

// UnmarshalTOML reads a value from a TOML file, which has no null: what it leaves
// out is unset.
func (o *Opt[T]) UnmarshalTOML(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.UnmarshalJSON(b)
}
