package check

import (
	"fmt"

	"gpuhooks/internal/config"
)

var directories = Check{
	Name: "directories", Code: "DIRS", Tier: 0, Class: Config, Host: true,
	Default: config.PolicyWarn,
	Doc: Doc{
		What: "Can the spool and the state directory be written, and have they [limits] dir_free_mib left?",
		Why:  "Job records then go to the fallback, which a reboot empties; a filesystem that turned read-only is often the first sign of a dying disk.",
		Cure: "df, mount, dmesg: make room, or repair and remount the filesystem. [paths] spool and state say where the directories are.",
	},
	Run: func(in Input) []Finding {
		h := in.Node.Host
		if h == nil {
			return unseen()
		}
		var out []Finding
		for _, d := range h.Dirs {
			free, known := d.Free.Get()
			switch {
			case !d.Writable:
				out = append(out, Finding{Outcome: Fail, Text: fmt.Sprintf("%s cannot be written: %s", d.Path, d.Why)})
			case known && in.Limits.DirFree > 0 && free < uint64(in.Limits.DirFree)<<20:
				out = append(out, Finding{Outcome: Fail, Text: fmt.Sprintf("%s has %d MiB left", d.Path, free>>20)})
			}
		}
		if f := hostFault(h, "directory"); f != nil {
			out = append(out, faulty(f))
		}
		if len(out) == 0 && len(h.Dirs) == 0 {
			return []Finding{{Outcome: Skip, Text: "no directory was asked for"}}
		}
		return out
	},
}
