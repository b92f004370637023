package sim

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// exportLists are the functions that the libraries of real drivers export.
//
//go:embed exports/*.txt
var exportLists embed.FS

// Branches returns the older driver branches that can be simulated.
func Branches() []string { return []string{"470", "535", "550"} }

// Exports returns the functions that a driver of the branch has.
func Exports(branch string) ([]string, error) {
	text, err := exportLists.ReadFile("exports/" + branch + ".txt")
	if err != nil {
		return nil, fmt.Errorf("driver branch %q: not one of %s", branch, strings.Join(Branches(), ", "))
	}
	return strings.Fields(string(text)), nil
}

// SetDriver makes the node's driver one of an older branch: its library lacks
// the functions that came later, so that looking them up fails and calling them
// ends the process, and what it answers lacks the values that came later. Only
// processes that open the library from now on see it.
func (n *Node) SetDriver(branch string) error {
	if err := n.useLibraryOf(branch); err != nil {
		return err
	}
	return n.Set("driver.exports=" + branch)
}

func (n *Node) useLibraryOf(branch string) error {
	library, err := libraryOf(branch)
	if err != nil {
		return err
	}
	draft := n.Library() + ".new" // processes may have the present one open
	if err := linkOrCopy(library, draft); err != nil {
		return err
	}
	return os.Rename(draft, n.Library())
}

// libraryOf links the library of a branch, unless that was done before.
func libraryOf(branch string) (string, error) {
	names, err := Exports(branch)
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	library := filepath.Join(cache, libraryName+"-"+branch)
	if _, err := os.Stat(library); !errors.Is(err, fs.ErrNotExist) {
		return library, err
	}
	work, err := os.MkdirTemp(cache, ".link-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	text := "{ global: " + strings.Join(names, "; ") + "; local: *; };\n"
	if err := os.WriteFile(filepath.Join(work, "exports"), []byte(text), 0o644); err != nil {
		return "", err
	}
	if err := link(work, filepath.Join(cache, objectName), libraryName, "-Wl,--version-script=exports"); err != nil {
		return "", err
	}
	return library, os.Rename(filepath.Join(work, libraryName), library)
}

// branchOf is what a scenario says of driver.exports, "" for the newest.
func branchOf(scenario string) string {
	branch := ""
	for line := range strings.Lines(scenario) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "driver.exports" {
			branch = strings.TrimSpace(value)
		}
	}
	return branch
}
