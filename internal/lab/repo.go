package lab

import (
	"errors"
	"os"
	"path/filepath"
)

// RepoRoot finds the checkout the caller works in: the lab uses its bin/ and
// scripts/ and is never installed.
func RepoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("not inside the source tree: no go.mod above the working directory")
}

// FromRepo fills in where the programs and the wrappers are.
func (o Options) FromRepo() (Options, error) {
	root, err := RepoRoot()
	o.Bin, o.Scripts = filepath.Join(root, "bin"), filepath.Join(root, "scripts")
	return o, err
}
