package lab

import (
	"fmt"
	"os"
	"path/filepath"
)

// bin is where the cluster's own copies of the programs are.
func (l *Lab) bin() string { return filepath.Join(l.Dir, "bin") }

// InstallPrograms copies the built programs into a new directory of root's, as a
// site installs them: the hooks start no gpu-probe that somebody other than root
// could have written, and who builds them need not be root.
func InstallPrograms(from, to string) error {
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"gpu-prolog", "gpu-epilog", "gpu-healthcheck", "gpu-accounting", "gpu-probe"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return fmt.Errorf("make build comes first: %w", err)
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o755); err != nil {
			return err
		}
	}
	return nil
}
