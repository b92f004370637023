package node

import (
	"errors"
	"fmt"
	"os"

	"gpuhooks/internal/xid"
)

// Catalogue is the XID catalogue with the site's own over it: paths.xid, "" for
// none. It can always be used: of a site's file that is broken or cannot be read
// the error says where, one error each fault, and the built-in catalogue holds;
// a key that is not known is left out.
func Catalogue(path string) (xid.Catalogue, error) {
	var site []byte
	var unreadable error
	if path != "" {
		site, unreadable = os.ReadFile(path)
	}
	c, err := xid.Load(site)
	return c, errors.Join(unreadable, inFile(path, err))
}

// inFile names the file in each of several joined errors.
func inFile(path string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if err == nil {
			return nil
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, inFile(path, e))
	}
	return errors.Join(all...)
}
