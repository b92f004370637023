//go:build !man

package cli

// addMan adds nothing: see man.go.
func addMan(*Command) {}
