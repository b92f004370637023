package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// slurmCommands are what the hooks ask Slurm with.
var slurmCommands = []string{"scontrol", "sinfo", "squeue", "sacct"}

// counted is the script of that name that notes its arguments and then is the
// command.
func (n *Node) counted(command string) string { return filepath.Join(n.Dir, command) }

func (n *Node) callLog() string { return filepath.Join(n.Dir, "calls.log") }

// countCalls writes the scripts that note what is asked.
func (n *Node) countCalls() error {
	for _, c := range slurmCommands {
		text := fmt.Sprintf("#!/bin/sh\necho %s \"$*\" >>%s\nexec %s \"$@\"\n", c, n.callLog(), commandPath(c))
		if err := os.WriteFile(n.counted(c), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// SlurmCalls are the questions that the hooks of this node have asked slurmctld,
// each with its command and arguments, where the lab keeps them.
func (n *Node) SlurmCalls() (all []string) {
	for line := range strings.Lines(ReadFile(n.callLog())) {
		if line = strings.TrimSpace(line); !strings.HasSuffix(line, " --version") { // asks nobody
			all = append(all, line)
		}
	}
	return all
}
