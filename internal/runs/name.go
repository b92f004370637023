package runs

import (
	"fmt"
	"strconv"
	"strings"
)

// Name names a run: the job, and how often Slurm had restarted it. It is the
// name of the run's directory, "4711.0".
type Name struct {
	Job     uint32
	Restart int
}

// String is the directory's name.
func (n Name) String() string { return fmt.Sprintf("%d.%d", n.Job, n.Restart) }

// ParseName reads a directory's name. Anything but two plain numbers, written
// the way String writes them, is no run.
func ParseName(s string) (Name, bool) {
	job, restart, ok := strings.Cut(s, ".")
	if !ok {
		return Name{}, false
	}
	j, err := strconv.ParseUint(job, 10, 32)
	if err != nil || j == 0 {
		return Name{}, false
	}
	r, err := strconv.ParseUint(restart, 10, 31)
	if err != nil {
		return Name{}, false
	}
	n := Name{Job: uint32(j), Restart: int(r)}
	return n, n.String() == s
}
