package host

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Daemons are those of the driver that a node may need, by their programs.
var Daemons = []string{"nv-fabricmanager", "nvidia-persistenced", "nv-hostengine", "nvidia-imex"}

// commLength is how much the kernel keeps of a process's name.
const commLength = 15

// daemonOf finds the daemon with a name as the kernel keeps it: of
// nvidia-persistenced that is nvidia-persiste. "" for all others.
func daemonOf(comm []byte) string {
	for _, d := range Daemons {
		if string(comm) == d[:min(len(d), commLength)] {
			return d
		}
	}
	return ""
}

// runs says whether the process really runs that program, since a process
// chooses its name itself: the program has that name and is root's. Whoever
// may not see the program must believe the name.
func (s *scan) runs(pid int, name string) bool {
	link := s.fs.Path("proc", strconv.Itoa(pid), "exe")
	program, err := os.Readlink(link)
	if errors.Is(err, os.ErrNotExist) {
		return s.fs != "/" // gone; a simulated process may have no program
	}
	if err != nil {
		return true
	}
	// An upgrade replaces the file under a running daemon.
	if filepath.Base(strings.TrimSuffix(program, " (deleted)")) != name {
		return false
	}
	st, err := os.Stat(link)
	if err != nil {
		return true
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return !ok || sys.Uid == 0
}
