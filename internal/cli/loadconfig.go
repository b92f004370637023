package cli

import (
	"errors"

	"gpuhooks/internal/check"
	"gpuhooks/internal/config"
)

// LoadConfig reads the configuration as people want it read: everything odd is
// an error with status 2. The file that nobody named may be missing.
func LoadConfig(path string) (config.Config, error) {
	c, err := config.Load(path, path != config.Path)
	if err == nil {
		err = errors.Join(c.UnknownChecks(path, check.Names())...)
	}
	if err != nil {
		return c, &ExitError{Code: Usage, Err: err}
	}
	return c, nil
}
